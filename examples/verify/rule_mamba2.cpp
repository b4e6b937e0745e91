#include "verify/rules.hpp"

verify::runnable_rule verify::rule_in(mamba2_family, rule_choice choice) { return find_rule<mamba2_family>(choice); }
