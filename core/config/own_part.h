// Own parts: parts of a run that a program registers (register_aggregator(), register_model(), ...). Unlike a
// built-in part, an own part may throw an exception or return what its interface forbids. Each kind of part
// has one table of its kinds, and register_kind() adds to it; guarded() calls an own part so that the error
// names it.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/text.h"

namespace fedge::config {

// Thrown instead of the exception of an own part; what() names the part.
class PartFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kMaxPartReason = 300;  // bytes of an exception's text in logs and in the store

// Calls an own part. Whatever it throws becomes a PartFailure with the part's name.
template <class Call>
auto guarded(const std::string& part, Call&& call) {
  try {
    return call();
  } catch (const PartFailure&) {
    throw;
  } catch (const std::exception& error) {
    throw PartFailure(part + " threw an exception: " + clean_text(error.what(), kMaxPartReason));
  } catch (...) {
    throw PartFailure(part + " threw an exception that is not a std::exception");
  }
}

// Calls what uses own parts and returns a Result. A PartFailure becomes an error: kInvalid.
template <class Call>
auto failure_as_error(Call&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const PartFailure& failure) {
    return invalid(failure.what());
  }
}

// Prints the message with the program's name and ends the program with exit code 1.
[[noreturn]] void refuse_registration(const std::string& message);

// The end of an error message about an unknown kind of this part: "; if it is a sampler of your own program,
// ...". `on_clients`: whether clients need the part in every run; otherwise only in serverless runs.
std::string own_program_hint(const std::string& a_part, bool on_clients);

// Adds an own kind to the table of its part ("sampler", "a sampler"). Ends the program with a message if its
// name is taken or a member is null.
template <class Kind>
void register_kind(std::vector<Kind>& table, const Kind& kind, const std::string& part,
                   const std::string& a_part) {
  const std::string function = "register_" + part + "()";
  if (kind.name == nullptr || *kind.name == '\0')
    refuse_registration(a_part + " without a name; set .name in " + function);
  for (const Kind& other : table)
    if (std::string_view(other.name) == kind.name)
      refuse_registration("there is already " + a_part + " " + kind.name + "; choose another name");
  const char* missing = kind.paper == nullptr     ? "paper"
                        : kind.summary == nullptr ? "summary"
                        : kind.read == nullptr    ? "read"
                                                  : nullptr;
  if (missing != nullptr)
    refuse_registration("the " + part + " " + kind.name + " has no " + missing + "; set ." + missing +
                        " in " + function);
  table.push_back(kind);
  table.back().own = true;
}

template <class Kinds>
std::vector<std::string> names_of(const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto& kind : kinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace fedge::config
