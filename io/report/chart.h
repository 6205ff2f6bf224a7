// Draws charts of curves as SVG inside a page.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

struct CurvePoint {
  double x = 0;
  double y = 0;  // if it is not finite, the curve has a gap
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // in ascending order of x
  int colour = 0;                  // index of one of the page's colours, 0 to 7
  bool marked = false;             // draw a dot at every point, which shows its value
};

struct Chart {
  std::string title;
  std::string x_title;
  std::vector<Curve> curves;
};

// Returns a card with title, legend (with each curve's last value) and drawing; "" if no curve has a point that can be
// drawn. The y axis is logarithmic if all values are positive and the largest is more than a hundred times the
// smallest. If a curve has many points, only the lowest and the highest point of each section are drawn, so that peaks
// stay visible.
std::string to_html(const Chart& chart);

// Returns about `count` round numbers; the first is at most `low`, the last at least `high`.
std::vector<double> ticks(double low, double high, int count);

}  // namespace trainctl
