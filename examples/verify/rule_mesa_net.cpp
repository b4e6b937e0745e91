#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(mesa_net_family, rule_choice choice) { return find_rule<mesa_net_family>(choice); }
