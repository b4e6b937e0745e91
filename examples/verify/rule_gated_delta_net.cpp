#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(gated_delta_net_family, rule_choice choice) { return find_rule<gated_delta_net_family>(choice); }
