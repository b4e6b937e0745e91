#pragma once
/// @file
/// The JSON header of a safetensors file:
///
///     {"__metadata__": {key: string, ...}, name: {"dtype": string, "shape": [extent, ...], "data_offsets": [begin,
///     end]}, ...}
///
/// read as a stream of events against this grammar. Nothing else is ever built, so what a header makes us allocate is
/// proportional to its own length, and a nest of a million brackets ends at the first one that does not belong.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsa/detail/config.hpp"
#include "palimpsa/io/file_error.hpp"
#include "palimpsa/io/tensor.hpp"

namespace palimpsa::inline PALIMPSA_ABI::io {
namespace detail {

/// One tensor as the header describes it; offsets count from the end of the header, and nothing is checked against them
/// yet.
struct header_entry {
  std::string name;
  dtype type;
  std::string other_type;  ///< its name, where type is `other`
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

/// A header taken apart, entries in the order they were written.
struct header {
  metadata_map metadata;
  std::vector<header_entry> entries;
};

/// Receives the parser's events. Each public member is an event of nlohmann's SAX interface; each either takes one step
/// in the grammar above or throws file_error.
class header_reader {
 public:
  using unsigned_type = nlohmann::json::number_unsigned_t;
  using binary_type = nlohmann::json::binary_t;

  explicit header_reader(std::string const& file) : file_(file) {}

  header take() { return std::move(result_); }

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool number_integer(std::int64_t number) { return unexpected(std::to_string(number)); }
  bool number_float(double, std::string const& text) { return unexpected(printable(text)); }
  bool binary(binary_type&) { return unexpected("binary data"); }

  bool number_unsigned(unsigned_type number) {
    if (where_ == place::shape && number <= static_cast<unsigned_type>((std::numeric_limits<std::int64_t>::max)())) {
      shape_->push_back(static_cast<std::int64_t>(number));
    } else if (where_ == place::offsets && offsets_->size() < 2) {
      offsets_->push_back(number);
    } else {
      return unexpected(std::to_string(number));
    }
    return true;
  }

  bool string(std::string& text) {
    if (where_ == place::metadata) {
      result_.metadata[key_] = std::move(text);
    } else if (where_ == place::tensor && key_ == "dtype") {
      type_ = dtype_named(text);
      other_type_ = *type_ == dtype::other ? std::move(text) : std::string();
    } else {
      return unexpected("the string '" + printable(text) + "'");
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (where_ == place::document) {
      where_ = place::top;
    } else if (where_ == place::top) {
      where_ = name_ == "__metadata__" ? place::metadata : place::tensor;
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(std::string& text) {
    if (where_ == place::top) {
      if (!names_.insert(text).second) refuse(file_, "header", "each name once", "'" + printable(text) + "' twice");
      name_ = std::move(text);
      return true;
    }
    key_ = std::move(text);
    bool const known = where_ == place::metadata || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
    if (!known) refuse(file_, tensor_text(), "the fields dtype, shape and data_offsets", "'" + printable(key_) + "'");
    bool const again = where_ == place::metadata ? result_.metadata.count(key_) != 0
                                                 : (key_ == "dtype" && type_) || (key_ == "shape" && shape_) ||
                                                       (key_ == "data_offsets" && offsets_);
    if (again) refuse(file_, tensor_text(), "each field once", "'" + printable(key_) + "' twice");
    return true;
  }

  bool end_object() {
    if (where_ == place::tensor) finish_tensor();
    where_ = where_ == place::top ? place::document : place::top;
    return true;
  }

  bool start_array(std::size_t) {
    if (where_ == place::tensor && key_ == "shape") {
      where_ = place::shape;
      shape_.emplace();
    } else if (where_ == place::tensor && key_ == "data_offsets") {
      where_ = place::offsets;
      offsets_.emplace();
    } else {
      return unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    where_ = place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, std::string const&, nlohmann::json::exception const& error) {
    throw file_error(file_ + ": header: expected JSON, given at byte " + std::to_string(position) +
                     " of it: " + printable(error.what(), 240));
  }

 private:
  enum class place { document, top, metadata, tensor, shape, offsets };

  std::string tensor_text() const { return name_ == "__metadata__" ? name_ : "tensor '" + printable(name_) + "'"; }
  std::string field_text() const { return tensor_text() + ": " + printable(key_); }

  bool unexpected(std::string const& given) const {
    switch (where_) {
      case place::document:
        refuse(file_, "header", "an object", given);
      case place::top:
        refuse(file_, tensor_text(), "an object", given);
      case place::metadata:
        refuse(file_, field_text(), "a string", given);
      case place::shape:
        refuse(file_, field_text(), "extents from 0 to 2^63 - 1", given);
      case place::offsets:
        refuse(file_, field_text(), "two offsets, 0 or more, that fit 64 bits", given);
      case place::tensor:
        break;
    }
    refuse(file_, field_text(), key_ == "dtype" ? "a string" : "an array", given);
  }

  void finish_tensor() {
    if (!type_) refuse(file_, tensor_text(), "the field dtype", "none");
    if (!shape_) refuse(file_, tensor_text(), "the field shape", "none");
    if (!offsets_) refuse(file_, tensor_text(), "the field data_offsets", "none");
    if (offsets_->size() != 2) {
      refuse(file_, tensor_text() + ": data_offsets", "two offsets", std::to_string(offsets_->size()));
    }
    result_.entries.push_back(
        {std::move(name_), *type_, std::move(other_type_), std::move(*shape_), (*offsets_)[0], (*offsets_)[1]});
    type_.reset();
    shape_.reset();
    offsets_.reset();
  }

  std::string const& file_;
  header result_;
  place where_ = place::document;
  std::set<std::string> names_;
  std::string name_;  ///< of the entry being read
  std::string key_;   ///< of the field within that entry
  std::optional<dtype> type_;
  std::string other_type_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::uint64_t>> offsets_;
};

/// Takes a header apart. @throws file_error for anything but the grammar above.
inline header parse_header(std::string_view text, std::string const& file) {
  if (text.empty() || text.front() != '{') {
    refuse(file, "no safetensors file: header", "a JSON object that starts with '{'", "'" + printable(text, 16) + "'");
  }
  // The parser takes a zero byte for the end of its input: whatever followed would be ignored.
  if (auto const zero = text.find('\0'); zero != std::string_view::npos) {
    refuse(file, "header", "JSON", "a zero byte at byte " + std::to_string(zero) + " of it");
  }
  header_reader reader(file);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &reader);
  return reader.take();
}

}  // namespace detail
}  // namespace palimpsa::io
