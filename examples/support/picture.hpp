#pragma once
/// @file
/// Pictures by gnuplot, where it is installed.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace example {

/// A curve of a panel. The style is gnuplot's: "lines lw 2", "linespoints dt 3".
struct curve {
  std::string title, style;
  std::vector<std::pair<double, double>> points;  ///< x, y
};

/// One set of axes. Settings are gnuplot commands, with ; between them.
struct panel {
  std::string x_label, y_label, settings;
  std::vector<curve> curves;
};

/// Writes NAME.gp, the gnuplot script of an SVG picture with panels side by side, and draws NAME.svg if gnuplot is
/// there. Says what it did.
/// @return false if gnuplot was there and failed
inline bool draw(std::string const& name, std::string const& size, std::vector<panel> const& panels) {
  std::string const script = name + ".gp", picture = name + ".svg";
  {
    std::ofstream to(script);
    to << "set terminal svg size " << size << " font 'Helvetica,Arial,sans-serif,14' background 'white'\n"
       << "set output '" << picture << "'\nset border 3\nset tics nomirror\nset grid lc '#dddddd'\n"
       << "set multiplot layout 1," << panels.size() << '\n';
    for (auto const& p : panels) {
      for (std::size_t c = 0; c < p.curves.size(); ++c) {
        to << "$curve" << c << " << END\n";
        for (auto const& [x, y] : p.curves[c].points) to << x << ' ' << y << '\n';
        to << "END\n";
      }
      to << "set xlabel '" << p.x_label << "'\nset ylabel '" << p.y_label << "'\n" << p.settings << '\n';
      for (std::size_t c = 0; c < p.curves.size(); ++c)
        to << (c == 0 ? "plot " : ", ") << "$curve" << c << " with " << p.curves[c].style << " title '"
           << p.curves[c].title << "'";
      to << '\n';
    }
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
