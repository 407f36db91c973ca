// Result<T>: a value, or an Error that says what is wrong and what would be right. For failures caused by a
// peer, a user, a file or a disk. Bugs are assertions (core/check.h); running out of memory is an exception.
// A subset of std::expected with the same names.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace fedge {

// Codes that a caller can react to; all other information is in the message.
enum class ErrorCode {
  kInvalid,      // malformed or out-of-range input; sending it again will not help
  kNotFound,     // a named thing (file, key, chunk, client) does not exist
  kCorrupt,      // bytes do not match their hash, checksum or declared length
  kRefused,      // identity, token or policy forbids it
  kStale,        // belongs to an earlier round, session or version
  kUnsupported,  // a version or feature that this build does not support
  kUnavailable,  // try again later: peer disconnected, connection lost, address in use
  kResource,     // memory, disk, sockets or a configured bound is exhausted
};

// The code's name in logs and messages, e.g. "invalid".
const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;

  // Returns the same error with its place in front: "examples/a.toml:3: ...".
  Error with_prefix(const std::string& prefix) const { return {code, prefix + message}; }
};

inline Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    FEDGE_CHECK(has_value(), error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    FEDGE_CHECK(has_value(), error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    FEDGE_CHECK(has_value(), error().message);
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  void value() const { FEDGE_CHECK(has_value(), error_.message); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

inline std::optional<Error> error_of(const Result<void>& result) {
  return result ? std::nullopt : std::optional<Error>(result.error());
}

}  // namespace fedge

// FEDGE_TRY(name, expression): defines name as the value, or returns the error from the enclosing function.
#define FEDGE_TRY(name, ...)                                        \
  auto name##_result = (__VA_ARGS__);                               \
  if (!name##_result) return ::fedge::Error(name##_result.error()); \
  auto name = std::move(name##_result).value()

// FEDGE_TRY_VOID(expression): returns the error, if any, from the enclosing function.
#define FEDGE_TRY_VOID(...) FEDGE_TRY_VOID_AS(__COUNTER__, __VA_ARGS__)
#define FEDGE_TRY_VOID_AS(number, ...) FEDGE_TRY_VOID_NAMED(number, __VA_ARGS__)
#define FEDGE_TRY_VOID_NAMED(number, ...)                                                           \
  do {                                                                                              \
    if (auto fedge_error_##number = ::fedge::error_of((__VA_ARGS__))) return *fedge_error_##number; \
  } while (false)
