// Charts of curves as SVG inside a page.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

struct CurvePoint {
  double x = 0;
  double y = 0;  // where it is not finite, the curve has a gap
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // by ascending x
  int colour = 0;                  // 0 to 7: those of the page
  bool marked = false;             // with a dot at every point, which tells its value
};

struct Chart {
  std::string title;
  std::string x_title;
  std::vector<Curve> curves;
};

// A card with title, legend (each curve's last value) and drawing; "" where no curve has a point that can be drawn. The
// y axis is logarithmic where all values are positive and the largest is over a hundred times the smallest. Of a curve
// of many points the lowest and the highest of each stretch are drawn, so that peaks stay.
std::string to_html(const Chart& chart);

// Round numbers from at or below `low` to at or above `high`, about `count` of them.
std::vector<double> ticks(double low, double high, int count);

}  // namespace trainctl
