// Draws scales, axes and lines of a chart.
#include "io/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/format.h"
#include "io/report/html.h"

namespace trainctl {
namespace {

constexpr double width = 420, height = 220;  // size of the drawing in SVG units
constexpr double left = 52, right = 410, top = 10, bottom = 186;
constexpr std::size_t max_points = 600;  // a curve with more points is thinned out
constexpr std::size_t max_marks = 200;

bool is_drawn(const CurvePoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// Returns the lowest and the highest point of each of max_points / 2 sections, in order of x.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points) {
  if (points.size() <= max_points) return points;
  const std::size_t sections = max_points / 2;
  std::vector<CurvePoint> kept;
  for (std::size_t s = 0; s < sections; ++s) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(s * points.size() / sections);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((s + 1) * points.size() / sections);
    const auto gap = std::find_if_not(begin, end, is_drawn);
    if (gap != end) {
      kept.push_back(*gap);
      continue;
    }
    auto [low, high] =
        std::minmax_element(begin, end, [](const CurvePoint& a, const CurvePoint& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

// One axis: converts values to positions in the drawing.
class Scale {
 public:
  Scale(double low, double high, bool logarithmic, double begin, double end)
      : logarithmic_(logarithmic), begin_(begin), end_(end), low_(of(low)), high_(of(high)) {}

  double position(double value) const {
    return high_ == low_ ? (begin_ + end_) / 2 : begin_ + (of(value) - low_) / (high_ - low_) * (end_ - begin_);
  }

 private:
  double of(double value) const { return logarithmic_ ? std::log10(value) : value; }

  bool logarithmic_;
  double begin_, end_, low_, high_;
};

struct Bounds {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
};

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e7) return format("{:g}k", value / 1e3);
  return format("{:g}", value);
}

// Returns the values at which an axis has lines, and extends the bounds to them: powers of ten on a logarithmic axis.
std::vector<double> lines_of(Bounds& bounds, bool logarithmic, int count) {
  if (logarithmic) {
    std::vector<double> lines;
    for (double power = std::floor(std::log10(bounds.low)); power <= std::ceil(std::log10(bounds.high)); ++power) {
      lines.push_back(std::pow(10, power));
    }
    bounds.low = lines.front(), bounds.high = lines.back();
    return lines;
  }
  std::vector<double> lines = ticks(bounds.low, bounds.high, count);
  bounds.low = std::min(bounds.low, lines.front());
  bounds.high = std::max(bounds.high, lines.back());
  return lines;
}

std::string line_of(const Curve& curve, const Scale& x, const Scale& y) {
  std::string lines, polyline;
  const auto finish = [&] {
    if (!polyline.empty()) lines += format("<polyline points=\"{}\" stroke=\"var(--c{})\"/>\n", polyline, curve.colour);
    polyline.clear();
  };
  const bool marked = (curve.marked && curve.points.size() <= max_marks) || curve.points.size() == 1;
  for (const CurvePoint& point : thinned(curve.points)) {
    if (!is_drawn(point)) {
      finish();
      continue;
    }
    polyline += format("{}{:.1f},{:.1f}", polyline.empty() ? "" : " ", x.position(point.x), y.position(point.y));
    if (!marked) continue;
    lines += format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"var(--c{})\"><title>{}: {:.5g} at {:.4g}</title>"
        "</circle>\n",
        x.position(point.x), y.position(point.y), curve.colour, html::escaped(curve.name), point.y, point.x);
  }
  finish();
  return lines;
}

std::string legend_of(const Chart& chart) {
  std::string legend;
  for (const Curve& curve : chart.curves) {
    if (curve.points.empty()) continue;
    legend += format("<span><i style=\"background: var(--c{})\"></i>{} {:.4g}</span>", curve.colour,
                     html::escaped(curve.name), curve.points.back().y);
  }
  return legend;
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
  if (high <= low) return {low};
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
  std::vector<double> values;
  const auto first = static_cast<long long>(std::floor(low / step)),
             last = static_cast<long long>(std::ceil(high / step));
  for (long long k = first; k <= last; ++k) values.push_back(static_cast<double>(k) * step);
  return values;
}

std::string to_html(const Chart& chart) {
  Bounds in_x, in_y;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) {
      if (is_drawn(point)) in_x.add(point.x), in_y.add(point.y);
    }
  }
  if (in_x.low > in_x.high) return "";
  const bool logarithmic = in_y.low > 0 && in_y.high > 100 * in_y.low;
  const std::vector<double> y_lines = lines_of(in_y, logarithmic, 5);
  const std::vector<double> x_lines = ticks(in_x.low, in_x.high, 5);
  const Scale x(in_x.low, in_x.high, false, left, right), y(in_y.low, in_y.high, logarithmic, bottom, top);

  std::string drawing =
      format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width, height, html::escaped(chart.title));
  for (const double value : y_lines) {
    drawing += format(
        "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>\n",
        left, right, y.position(value), y.position(value), left - 5, y.position(value) + 4, tick_text(value));
  }
  for (const double value : x_lines) {
    if (value < in_x.low || value > in_x.high) continue;
    drawing += format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x.position(value), bottom + 15,
                      tick_text(value));
  }
  drawing += format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + right) / 2, height - 4,
                    html::escaped(chart.x_title));
  for (const Curve& curve : chart.curves) drawing += line_of(curve, x, y);
  return format("<div class=\"card chart\"><h3>{}</h3><div class=\"legend\">{}</div>\n{}</svg></div>\n",
                html::escaped(chart.title), legend_of(chart), drawing);
}

}  // namespace trainctl
