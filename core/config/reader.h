// config::Reader: takes a table apart key by key with types, bounds, defaults and a sentence of
// documentation for each, then reports what it did not know. The calls that read are the schema:
// errors, "did you mean" and the generated reference (reference()) come from the same calls.
//
//   Reader reader(value, "training");
//   spec.batch_size = reader.integer("batch_size", 20, {1, 65536}, "Samples in one step.");
//   FEDGE_TRY_VOID(reader.finish());
//
// finish() returns every error there is (core/config/problems.h); reading goes on with defaults meanwhile.
#pragma once

#include <cstdint>
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

// One key as the generated reference shows it.
struct KeyDoc {
  std::string path;      // "training.batch_size"
  std::string type;      // "integer, 1 to 65536"
  std::string fallback;  // default as TOML, or "required"
  std::string doc;
};

// One of the values of a `kind` key, for people.
struct KindDoc {
  const char* name;
  const char* paper;  // who published it; empty: nobody in particular
  const char* summary;
};

class Reader {
 public:
  // `path` is the table's name in messages, "" at the root; `place` is where it begins, at the root the
  // file's name; `docs`, if given, collects every key asked for.
  Reader(const Table& table, std::string path, std::string place, std::vector<KeyDoc>* docs = nullptr);

  std::int64_t integer(const std::string& key, std::optional<std::int64_t> fallback, IntegerBounds bounds,
                       const char* doc);
  double number(const std::string& key, std::optional<double> fallback, NumberBounds bounds, const char* doc);
  bool boolean(const std::string& key, std::optional<bool> fallback, const char* doc);
  std::string text(const std::string& key, std::optional<std::string> fallback, const char* doc);
  // One of a closed list; another value is an error with a suggestion. Returns its index in `choices`.
  std::size_t choice(const std::string& key, const std::vector<std::string>& choices,
                     std::optional<std::size_t> fallback, const char* doc);
  std::vector<std::int64_t> integers(const std::string& key,
                                     std::optional<std::vector<std::int64_t>> fallback, IntegerBounds bounds,
                                     const char* doc);
  // Whole numbers are numbers too: [1, 0.2].
  std::vector<double> numbers(const std::string& key, std::optional<std::vector<double>> fallback,
                              NumberBounds bounds, const char* doc);
  // Empty texts and repetitions are left for the caller to judge.
  std::vector<std::string> texts(const std::string& key, std::optional<std::vector<std::string>> fallback,
                                 const char* doc);
  // An array of tables ([[disagreement]]), each to be read through its own Reader and handed back to adopt(),
  // in order; none if the key is absent. In messages the third is "disagreement[2]", and what it lacks is
  // reported at the line where it begins. While documentation is collected there is exactly one, an empty
  // table, so that each key of an element is documented once, as "disagreement.kind".
  std::vector<Reader> tables(const std::string& key, const char* doc);
  // The named sub-table (empty if absent), to be read by the caller through its own Reader and
  // handed back to adopt(); its keys are documented under path.key.
  Reader section(const std::string& key);
  // Takes over the errors of a section's reader, which has read all that it knows.
  void adopt(Reader& section);
  // Marks keys as known without reading them (another program's part of the file).
  void ignore(const std::string& key);
  bool has(const std::string& key) const { return table_->contains(key); }
  // For keys that take a list or something else.
  bool has_list(const std::string& key) const;
  // Records an error of the caller's own, about this key: "FILE:LINE: training.x: MESSAGE". The key may be
  // one of a table below this one: "adapter.rank". A sentence that takes other keys or tables to be right
  // names them in full as `rests_on`; it is left out if one of them has an error of its own.
  void fail(const std::string& key, const std::string& message, std::vector<std::string> rests_on = {});
  // The same for an error found elsewhere whose message begins with the full key: "model.adapter.rank: ...".
  void fail_at(const Error& error, std::vector<std::string> rests_on = {});
  // Records that a key that is given has no effect with the `kind` of its table, or with the key that
  // depends_on() names.
  void refuse(const std::string& key, const std::string& message);
  // What this table's keys mean depends on the key with this full name, as on the table's own `kind`.
  void depends_on(const std::string& key) { problems_.depend(path_, key); }

  // Every error, unknown keys among them, each with its place and the closest known key.
  Result<void> finish();
  // The same as a list; empty if all is well.
  std::vector<Problem> finish_problems();

  const std::string& path() const { return path_; }

 private:
  const Value* take(const std::string& key, const std::string& type, const std::string& fallback,
                    const char* doc, bool required);
  std::string full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  // The value itself is wrong.
  void wrong(const std::string& key, const std::string& message);
  void find_unknown();

  const Table* table_;
  std::string path_;
  std::string place_;  // of the table: the file's name at the root
  std::vector<KeyDoc>* docs_;
  std::vector<std::string> known_;
  Problems problems_;
};

// Puts the key's place in front of an error that was found once the document had been read, if its message
// begins with the key ("model.adapter.rank: ..."), as Reader::fail() has it. Other errors stay as they are.
Error at_key(const Document& document, Error error);

// The closest of `known` to a misspelt word (edit distance at most a third of its length, or 2), if any.
std::optional<std::string> suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace fedge::config
