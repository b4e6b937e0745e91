#pragma once
/// @file
/// Pictures by gnuplot, where it is installed.

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

namespace example {

/// A point of a curve, or a pixel of an image.
struct point {
  double x, y, z = std::numeric_limits<double>::quiet_NaN();  ///< z: the height of a pixel
};

/// A curve of a panel. The style is gnuplot's: "lines lw 2", "linespoints dt 3", "image". Without a title it is not in the key.
struct curve {
  std::string title, style;
  std::vector<point> points;
};

/// One set of axes. Settings are gnuplot commands, with ; between them.
struct panel {
  std::string x_label, y_label, settings;
  std::vector<curve> curves;
};

/// What gnuplot is to do for a panel.
inline void write_panel(std::ostream& to, panel const& p) {
  for (std::size_t c = 0; c < p.curves.size(); ++c) {
    to << "$curve" << c << " << END\n";
    for (auto const& [x, y, z] : p.curves[c].points) {
      to << x << ' ' << y;
      if (!std::isnan(z)) to << ' ' << z;
      to << '\n';
    }
    to << "END\n";
  }
  to << "set xlabel '" << p.x_label << "'\nset ylabel '" << p.y_label << "'\n" << p.settings << '\n';
  for (std::size_t c = 0; c < p.curves.size(); ++c) {
    to << (c == 0 ? "plot " : ", ") << "$curve" << c << " with " << p.curves[c].style;
    to << (p.curves[c].title.empty() ? " notitle" : " title '" + p.curves[c].title + "'");
  }
  to << '\n';
}

/// Writes NAME.gp, the gnuplot script of an SVG picture with panels in rows of `columns` (0: one row), and draws NAME.svg if gnuplot
/// is there. Says what it did.
/// @return false if gnuplot was there and failed
inline bool draw(std::string const& name, std::string const& size, std::vector<panel> const& panels, std::size_t columns = 0) {
  std::string const script = name + ".gp", picture = name + ".svg";
  columns = columns == 0 ? panels.size() : columns;
  {
    std::ofstream to(script);
    to << "set terminal svg size " << size << " font 'Helvetica,Arial,sans-serif,14' background 'white'\n"
       << "set output '" << picture << "'\nset border 3\nset tics nomirror\nset grid lc '#dddddd'\n"
       << "set multiplot layout " << (panels.size() + columns - 1) / columns << ',' << columns << '\n';
    for (auto const& p : panels) write_panel(to, p);
    to << "unset multiplot\n";
  }
  if (std::system("command -v gnuplot > /dev/null 2>&1") != 0) {
    std::cout << "picture: skipped, gnuplot is not installed (its script is " << script << ")\n\n";
    return true;
  }
  bool const drawn = std::system(("gnuplot " + script).c_str()) == 0;
  std::cout << "picture: " << picture << (drawn ? "" : " could not be drawn from " + script) << "\n\n";
  return drawn;
}

}  // namespace example
