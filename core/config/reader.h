// config::Reader: reads a table key by key, with a type, bounds, a default and one sentence of documentation
// for each, and reports unknown keys. The read calls are the schema: errors, suggestions and the generated
// reference (reference()) come from the same calls.
//
//   Reader reader(value, "training");
//   spec.batch_size = reader.integer("batch_size", 20, {1, 65536}, "Samples in one step.");
//   FEDGE_TRY_VOID(reader.finish());
//
// finish() returns all errors (core/config/problems.h); until then, reading continues with defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/document.h"
#include "core/config/problems.h"

namespace fedge::config {

struct IntegerBounds {
  std::int64_t min;
  std::int64_t max;
};

struct NumberBounds {
  double min;
  double max;
};

// One key of the generated reference.
struct KeyDoc {
  std::string path;      // "training.batch_size"
  std::string type;      // "integer, 1 to 65536"
  std::string fallback;  // default as TOML, or "required"
  std::string doc;
};

// Describes one value of a `kind` key.
struct KindDoc {
  const char* name;
  const char* paper;  // publication; empty: none
  const char* summary;
};

class Reader {
 public:
  // `path` is the table's name in messages, "" at the root. `place` is where it begins; at the root, the
  // file's name. `docs`, if given, collects every key read.
  Reader(const Table& table, std::string path, std::string place, std::vector<KeyDoc>* docs = nullptr);

  std::int64_t integer(const std::string& key, std::optional<std::int64_t> fallback, IntegerBounds bounds,
                       const char* doc);
  double number(const std::string& key, std::optional<double> fallback, NumberBounds bounds, const char* doc);
  bool boolean(const std::string& key, std::optional<bool> fallback, const char* doc);
  std::string text(const std::string& key, std::optional<std::string> fallback, const char* doc);
  // Reads one of a closed list; another value is an error with a suggestion, or with `hint` at its end if
  // none of the list is near. Returns its index in `choices`.
  std::size_t choice(const std::string& key, const std::vector<std::string>& choices,
                     std::optional<std::size_t> fallback, const char* doc, const std::string& hint = "");
  std::vector<std::int64_t> integers(const std::string& key,
                                     std::optional<std::vector<std::int64_t>> fallback, IntegerBounds bounds,
                                     const char* doc);
  // Integers are accepted as well: [1, 0.2].
  std::vector<double> numbers(const std::string& key, std::optional<std::vector<double>> fallback,
                              NumberBounds bounds, const char* doc);
  // The caller must check for empty strings and repetitions.
  std::vector<std::string> texts(const std::string& key, std::optional<std::vector<std::string>> fallback,
                                 const char* doc);
  // An array of tables ([[disagreement]]), in order; empty if the key is absent. The caller reads each table
  // through its own Reader and returns it to adopt(). Messages call the third "disagreement[2]"; a missing
  // key is reported at the line where its table begins. While documentation is collected, the result is
  // exactly one empty table, so that each key of an element is documented once, as "disagreement.kind".
  std::vector<Reader> tables(const std::string& key, const char* doc);
  // The named sub-table (empty if absent). The caller reads it through the returned Reader and then calls
  // adopt(); its keys are documented under path.key.
  Reader section(const std::string& key);
  // Takes over the errors of a section's reader. Call it after the section's last read.
  void adopt(Reader& section);
  // Reads, through `read`, the keys that apply only to one value of the choice `key` ("kind"). Their
  // documentation begins with the value. If another value is chosen, a given key is an error unless the
  // chosen value has it too, and all reads return defaults; so read the keys of the chosen value first.
  void keys_of(const std::string& key, const std::string& value, const std::string& chosen,
               const std::function<void(Reader&)>& read);
  // Marks keys as known without reading them (they belong to another program).
  void ignore(const std::string& key);
  bool has(const std::string& key) const { return applies() && table_->contains(key); }
  // True if the key holds a list, for keys that accept a list or another type.
  bool has_list(const std::string& key) const;
  // Records the caller's error about this key: "FILE:LINE: training.x: MESSAGE". The key may belong to a
  // table below: "adapter.rank". `rests_on` names in full the other keys or tables that the message assumes
  // to be right; the error is omitted if one of them has an error itself. Nothing is recorded about keys of a
  // value of a choice that is not chosen (keys_of()): what the caller has read of them are defaults.
  void fail(const std::string& key, const std::string& message, std::vector<std::string> rests_on = {});
  // Same as fail() for an error whose message begins with the full key: "model.adapter.rank: ...".
  void fail_at(const Error& error, std::vector<std::string> rests_on = {});
  // Records that a given key has no effect with the `kind` of its table, or with the key named by
  // depends_on().
  void refuse(const std::string& key, const std::string& message);
  // Declares that this table's keys depend on the key with this full name, as on the table's own `kind`.
  void depends_on(const std::string& key) { problems_.depend(path_, key); }

  // All errors, including unknown keys, each with its place and the closest known key.
  Result<void> finish();
  // Same as finish(), as a list; empty if there are none.
  std::vector<Problem> finish_problems();

  const std::string& path() const { return path_; }

 private:
  // The value of a choice to which the keys apply that are read at the moment (keys_of()).
  struct Owner {
    std::string choice;
    std::string value;
    std::string chosen;
  };
  bool applies() const { return !owner_ || owner_->value == owner_->chosen; }
  // A problem of this key, or of this table if the key is not in it or is a table itself.
  Problem failure(const std::string& key, const std::string& message,
                  std::vector<std::string> rests_on) const;
  // Records that a key of a value that is not chosen was given.
  void refuse_of(const Owner& owner, const std::string& key);
  // Records a problem of this table, unless it is about keys of a value that is not chosen.
  void note(Problem problem) {
    if (applies()) problems_.add(std::move(problem));
  }
  const Value* take(const std::string& key, const std::string& type, const std::string& fallback,
                    const char* doc, bool required);
  std::string full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  // Records that the value itself is wrong.
  void wrong(const std::string& key, const std::string& message);
  void find_unknown();

  const Table* table_;
  std::string path_;
  std::string place_;  // of the table; at the root, the file's name
  std::vector<KeyDoc>* docs_;
  std::vector<std::string> known_;
  std::vector<std::string> known_below_;  // in full, of the tables that were adopted
  std::vector<std::string> kinds_;        // the known values of its key `kind`
  const Value* instead_ = nullptr;        // of the table, if something else has its name
  std::optional<Owner> owner_;            // none: the keys apply always
  Problems problems_;
};

// Prefixes an error found after reading with its key's place, if the message begins with the key
// ("model.adapter.rank: ..."), like Reader::fail(). Other errors stay as they are.
Error at_key(const Document& document, Error error);

}  // namespace fedge::config
