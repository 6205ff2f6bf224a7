// Fits lines to timed sizes.
#include "parallel/plan/measured/alpha_beta.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace trainctl {
namespace {

constexpr std::size_t max_pieces = 3;
constexpr double close_enough = 0.05;  // relative error of a size's time

struct Fit {
  AlphaBeta::Piece piece;
  double squares = 0;  // sum of the squares of the relative errors
  double worst = 0;    // largest relative error
};

// Fits a line to sizes [first, end) by least squares of the relative errors (weights 1 / seconds^2). Its beta is at
// least 0; if `first` is 0, its alpha is, too.
Fit fit_line(const std::vector<TimedSize>& sizes, std::size_t first, std::size_t end) {
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = first; i < end; ++i) {
    const double x = sizes[i].bytes, y = sizes[i].seconds, weight = 1 / (y * y);
    w += weight, wx += weight * x, wy += weight * y, wxx += weight * x * x, wxy += weight * x * y;
  }
  const double spread = w * wxx - wx * wx;
  Fit fit;
  fit.piece.begin = first == 0 ? 0 : sizes[first].bytes;
  fit.piece.end = sizes[end - 1].bytes;
  fit.piece.beta = end - first > 1 && spread > 0 ? std::max((w * wxy - wx * wy) / spread, 0.0) : 0;
  fit.piece.alpha = (wy - fit.piece.beta * wx) / w;
  if (first == 0 && fit.piece.alpha < 0) {
    fit.piece.alpha = 0;
    fit.piece.beta = wxy / wxx;
  }
  for (std::size_t i = first; i < end; ++i) {
    const double error = fit.piece.at(sizes[i].bytes) / sizes[i].seconds - 1;
    fit.squares += error * error;
    fit.worst = std::max(fit.worst, std::abs(error));
  }
  return fit;
}

// Returns the best fit of `pieces` pieces, each for at least two sizes, to the sizes from `first` on.
std::vector<Fit> fit_pieces(const std::vector<TimedSize>& sizes, std::size_t first, std::size_t pieces) {
  if (pieces == 1) return {fit_line(sizes, first, sizes.size())};
  std::vector<Fit> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t end = first + 2; end + 2 * (pieces - 1) <= sizes.size(); ++end) {
    std::vector<Fit> fits{fit_line(sizes, first, end)};
    double squares = fits.front().squares;
    for (const Fit& fit : fit_pieces(sizes, end, pieces - 1)) {
      fits.push_back(fit);
      squares += fit.squares;
    }
    if (squares >= least) continue;
    least = squares;
    best = std::move(fits);
  }
  return best;
}

}  // namespace

AlphaBeta::AlphaBeta(const std::vector<TimedSize>& sizes) {
  require(!sizes.empty(), "there are no measured sizes to fit a model to");
  const std::size_t max_count = std::max<std::size_t>(1, std::min(max_pieces, sizes.size() / 2));
  for (std::size_t count = 1; count <= max_count; ++count) {
    pieces_.clear();
    double worst = 0;
    for (const Fit& fit : fit_pieces(sizes, 0, count)) {
      pieces_.push_back(fit.piece);
      worst = std::max(worst, fit.worst);
    }
    if (worst <= close_enough) return;
  }
}

double AlphaBeta::seconds(double bytes) const {
  if (pieces_.empty()) return 0;
  const auto piece = std::find_if(pieces_.begin(), pieces_.end() - 1, [&](const Piece& p) { return bytes <= p.end; });
  if (bytes >= piece->begin) return piece->at(bytes);
  const Piece& before = *(piece - 1);
  const double fraction = (bytes - before.end) / (piece->begin - before.end);
  return (1 - fraction) * before.at(before.end) + fraction * piece->at(piece->begin);
}

}  // namespace trainctl
