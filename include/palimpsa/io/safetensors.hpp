#pragma once
/// @file
/// safetensors files, both ways. Needs nlohmann/json 3.11 and nothing of the library's core.
///
///     tensor.hpp    what a file holds
///     reader.hpp    read(path), parse(bytes, name)
///     writer.hpp    write(path, contents), serialize(contents, name)
///     convert.hpp   elements to and from double and int64

#include "palimpsa/io/convert.hpp"
#include "palimpsa/io/reader.hpp"
#include "palimpsa/io/tensor.hpp"
#include "palimpsa/io/writer.hpp"
