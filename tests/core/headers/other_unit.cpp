// The second unit: everything again, as another file of a user's program would.
#include "palimpsa/io/case_file.hpp"
#include "palimpsa/io/safetensors.hpp"
#include "palimpsa/palimpsa.hpp"
#include "palimpsa/version.hpp"

palimpsa::version_number const* version_seen_elsewhere() { return &palimpsa::version; }
