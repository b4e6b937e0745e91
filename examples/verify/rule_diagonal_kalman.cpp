#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(diagonal_kalman_family, rule_choice choice) { return find_rule<diagonal_kalman_family>(choice); }
