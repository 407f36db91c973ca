// FieldReader: reads the fields of one message of a peer and keeps the first error. Private to the codecs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/text.h"
#include "protocol/limits.h"
#include "protocol/messages.h"

namespace fedge::protocol {

class FieldReader {
 public:
  std::string text(const std::string& value, const char* field, std::size_t max_bytes = kMaxText,
                   LineEnds line_ends = LineEnds::kRefused) {
    keep(check_text(value, max_bytes, field, line_ends));
    return value;
  }
  template <class Repeated>
  std::vector<std::string> features(const Repeated& values) {
    std::vector<std::string> result;
    for (const std::string& value : values) result.push_back(text(value, "features", kMaxFeatureText));
    return result;
  }
  template <class T>
  T take(Result<T> result, const char* field) {
    if (result) return std::move(result).value();
    keep(result.error().with_prefix(std::string(field) + ": "));
    return T{};
  }
  void require(bool condition, const char* what) {
    if (!condition) keep(invalid(what));
  }
  bool failed() const { return error_.has_value(); }
  template <class T>
  Result<Message> finish(T message) {
    if (error_) return *error_;
    return Message(std::move(message));
  }

 private:
  void keep(const Result<void>& result) {
    if (!result && !error_) error_ = result.error();
  }
  std::optional<Error> error_;
};

}  // namespace fedge::protocol
