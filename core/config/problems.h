// config::Problems: everything that is wrong with a configuration file, so that one look at it shows all.
// Problems are reported in the order of their lines. A problem that only follows from another one is left
// out: a cross-check is silent about keys that are wrong themselves, and so is the complaint that a key does
// not go with a `kind` that nobody knows. Externally synchronised.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config/document.h"
#include "core/result.h"

namespace fedge::config {

struct Problem {
  enum class Kind {
    kWrong,         // the key itself: it is unknown, missing, of another type or out of range
    kInapplicable,  // the key has no effect with the `kind` that is chosen
    kJudgement,     // a cross-check's sentence about a table
  };
  Kind kind = Kind::kWrong;
  std::string key;           // in full: "training.batch_size"
  std::string where;         // "run.toml:12", "--set training.batch_size", or the file's name alone
  std::string message;       // without the place
  std::string suspect = {};  // the key that a misspelt one is likely to mean
  std::vector<std::string> rests_on = {};     // other keys and tables that the sentence takes to be right
  std::vector<std::string> governed_by = {};  // of an inapplicable key, once it is reported
};

// At most this many problems of a file are shown, and at most kMaxProblems are looked for.
inline constexpr std::size_t kMaxShownProblems = 20;
inline constexpr std::size_t kMaxProblems = 1000;

class Problems {
 public:
  // Those beyond kMaxProblems are dropped.
  void add(Problem problem);
  bool full() const { return problems_.size() >= kMaxProblems; }
  // What the keys of `table` mean depends on the key `on`, as on the table's own `kind`.
  void depend(const std::string& table, const std::string& on) { dependencies_.emplace_back(table, on); }
  // Takes over those of a table of the same file.
  void adopt(Problems&& other);
  // Those that do not follow from others, in the order of their lines. Cost: the square of their number.
  std::vector<Problem> reported() const;

 private:
  // The keys that decide whether this one has an effect: `kind` beside it, and what its tables depend on.
  std::vector<std::string> governing(const std::string& key) const;
  bool is_wrong(const std::string& path, const Problem& apart_from) const;
  bool follows(const Problem& problem) const;

  std::vector<Problem> problems_;
  std::vector<std::pair<std::string, std::string>> dependencies_;  // table, key
};

// No error if there are no problems. One problem is one sentence, "FILE:LINE: ..."; several are a line each,
// at most kMaxShownProblems of them, and a last line "N errors in FILE".
Result<void> to_result(const std::vector<Problem>& problems, const std::string& file);

}  // namespace fedge::config
