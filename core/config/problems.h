// config::Problems: all problems of a configuration file, so that the user sees them at once, in the order of
// their lines. A problem that only follows from another one is omitted: a cross-check of keys that are wrong
// themselves, or the inapplicability of a key under an unknown `kind`. Externally synchronised.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config/document.h"
#include "core/result.h"

namespace fedge::config {

struct Problem {
  enum class Kind {
    kWrong,         // the key itself: unknown, missing, of another type or out of range
    kInapplicable,  // the key has no effect with the selected `kind`
    kJudgement,     // the result of a cross-check of a table
  };
  Kind kind = Kind::kWrong;
  std::string key;      // in full: "training.batch_size"
  std::string where;    // "run.toml:12", "--set training.batch_size", or the file's name alone
  std::string message;  // without the place
  std::vector<std::string> suspects = {};     // the known keys that a misspelt one may mean
  std::vector<std::string> rests_on = {};     // keys and tables that the message assumes to be right
  std::vector<std::string> governed_by = {};  // of an inapplicable key, set when it is reported
};

// At most kMaxShownProblems of a file are shown, and at most kMaxProblems are collected.
inline constexpr std::size_t kMaxShownProblems = 20;
inline constexpr std::size_t kMaxProblems = 1000;

class Problems {
 public:
  // Drops problems beyond kMaxProblems.
  void add(Problem problem);
  // Ends the sentences about this key with a hint: "; did you mean ...?".
  void add_hint(const std::string& key, const std::string& hint);
  bool full() const { return problems_.size() >= kMaxProblems; }
  // Declares that the keys of `table` depend on the key `on`, as they depend on the table's own `kind`.
  void depend(const std::string& table, const std::string& on) { dependencies_.emplace_back(table, on); }
  // Takes over the problems of a table of the same file.
  void adopt(Problems&& other);
  // The problems that do not follow from others, in the order of their lines. Cost: quadratic in their
  // number.
  std::vector<Problem> reported() const;

 private:
  // The keys that decide whether this key has an effect: the `kind` beside it, and the keys its tables depend
  // on.
  std::vector<std::string> governing(const std::string& key) const;
  bool is_wrong(const std::string& path, const Problem& apart_from) const;
  bool follows(const Problem& problem) const;

  std::vector<Problem> problems_;
  std::vector<std::pair<std::string, std::string>> dependencies_;  // table, key
};

// Success if there are no problems. A single problem is "FILE:LINE: ..."; several are one line each, at most
// kMaxShownProblems of them, and a last line "N errors in FILE".
Result<void> to_result(const std::vector<Problem>& problems, const std::string& file);

}  // namespace fedge::config
