#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(delta_net_family, rule_choice choice) { return find_rule<delta_net_family>(choice); }
