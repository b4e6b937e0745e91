#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(palimpsa_family, rule_choice choice) { return find_rule<palimpsa_family>(choice); }
