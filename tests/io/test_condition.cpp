// The condition estimate against singular values.

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <random>

#include "palimpsa/io/condition.hpp"
#include "support/catch.hpp"

namespace io = palimpsa::io;

namespace {

io::detail::square copy_of(Eigen::MatrixXd const& from) {
  io::detail::square to(static_cast<std::size_t>(from.rows()));
  for (Eigen::Index i = 0; i < from.rows(); ++i)
    for (Eigen::Index j = 0; j < from.cols(); ++j) to(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = from(i, j);
  return to;
}

double condition_of(Eigen::MatrixXd const& a) {
  Eigen::VectorXd const values = Eigen::JacobiSVD<Eigen::MatrixXd>(a).singularValues();
  return values(0) / values(values.size() - 1);
}

/// Never above the truth (but for rounding), and no less than half of it.
void is_near(double estimate, double truth) {
  CHECK(estimate <= truth * (1 + 1e-6));
  CHECK(2 * estimate >= truth);
}

Eigen::MatrixXd noise(std::mt19937& random, int n) {
  std::normal_distribution<double> normal;
  Eigen::MatrixXd a(n, n);
  for (double& x : a.reshaped()) x = normal(random);
  return a;
}

}  // namespace

TEST_CASE("the condition of a precision is estimated within a factor of 2", "[io]") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform;
  for (int run = 0; run < 60; ++run) {
    int const n = 1 + run;
    double const spread = std::pow(10.0, run % 9);
    Eigen::MatrixXd const q = Eigen::HouseholderQR<Eigen::MatrixXd>(noise(random, n)).householderQ();
    Eigen::VectorXd values(n);
    for (double& x : values) x = std::pow(spread, uniform(random));
    Eigen::MatrixXd const a = q * values.asDiagonal() * q.transpose();
    auto matrix = copy_of(0.5 * (a + a.transpose()));
    INFO(n << " spread " << spread);
    is_near(io::detail::definite_condition(matrix), values.maxCoeff() / values.minCoeff());
  }
}

TEST_CASE("the condition of a unit triangle is estimated within a factor of 2", "[io]") {
  std::mt19937 random(6);
  for (int run = 0; run < 60; ++run) {
    int const n = 1 + run;
    Eigen::MatrixXd a = 0.15 * (run % 5) * noise(random, n);
    a.triangularView<Eigen::Upper>().setZero();
    a.diagonal().setOnes();
    double const truth = condition_of(a);
    if (truth > 1e12) continue;  // singular values in double are no truth there
    INFO(n);
    is_near(io::detail::triangle_condition(copy_of(a)), truth);
  }
}

TEST_CASE("a matrix that is not definite has no finite condition", "[io]") {
  io::detail::square a(2);
  a(0, 0) = 1, a(0, 1) = a(1, 0) = 2, a(1, 1) = 1;
  CHECK(std::isinf(io::detail::definite_condition(a)));
}
