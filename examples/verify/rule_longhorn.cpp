#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(longhorn_family, rule_choice choice) { return find_rule<longhorn_family>(choice); }
