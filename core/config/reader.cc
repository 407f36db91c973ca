#include "core/config/reader.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "core/config/suggestion.h"

namespace fedge::config {
namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string bounds_text(NumberBounds bounds) {
  if (std::isinf(bounds.max)) return "at least " + number_text(bounds.min);
  return number_text(bounds.min) + " to " + number_text(bounds.max);
}

std::string bounds_text(IntegerBounds bounds) {
  if (bounds.max == std::numeric_limits<std::int64_t>::max()) return "at least " + std::to_string(bounds.min);
  return std::to_string(bounds.min) + " to " + std::to_string(bounds.max);
}

std::optional<double> number_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value.data)) return *real;
  return std::nullopt;
}

std::string list_text(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

// Place of the key or of the innermost existing table around it; nothing if even the outermost is absent.
std::optional<std::string> place_of(const Table& table, std::string_view path) {
  const std::size_t dot = path.find('.');
  const auto found = table.find(std::string(path.substr(0, dot)));
  if (found == table.end()) return std::nullopt;
  const auto* inner = std::get_if<Table>(&found->second.data);
  if (dot == std::string_view::npos || inner == nullptr) return found->second.where;
  return place_of(*inner, path.substr(dot + 1)).value_or(found->second.where);
}

// The full key at the start of a message such as "model.adapter.rank: ..."; empty if none.
std::string_view leading_key(std::string_view message) {
  const std::string_view key = message.substr(0, message.find(": "));
  const bool dotted =
      key.size() < message.size() && key.find('.') != std::string_view::npos &&
      key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string_view::npos;
  return dotted ? key : std::string_view();
}

// "--set run.rounds=" without a value.
bool is_missing(const Value& value) {
  const auto* text = std::get_if<std::string>(&value.data);
  return text != nullptr && text->empty() && value.where.starts_with("--set ");
}

std::string found_text(const Value& value) {
  return is_missing(value) ? "the value is missing" : std::string("found ") + type_name(value);
}

// A table's name with the value of its key `kind`, as people write it who forget the key.
std::string kind_hint(const std::string& key, const std::string& kind, const std::string& where) {
  return "; did you mean " + key + (where.starts_with("--set ") ? "=" + kind : " = \"" + kind + "\"") + "?";
}

}  // namespace

Reader::Reader(const Table& table, std::string path, std::string place, std::vector<KeyDoc>* docs)
    : table_(&table), path_(std::move(path)), place_(std::move(place)), docs_(docs) {}

const Value* Reader::take(const std::string& key, const std::string& type, const std::string& fallback,
                          const char* doc, bool required) {
  const bool known = std::ranges::find(known_, key) != known_.end();
  if (!known) known_.push_back(key);
  if (docs_ != nullptr)
    docs_->push_back({full(key), type, required ? "required" : fallback,
                      (owner_ ? owner_->value + ": " : std::string()) + doc});
  const auto it = table_->find(key);
  if (!applies()) {
    if (!known && it != table_->end()) refuse_of(*owner_, key);
    return nullptr;
  }
  if (it != table_->end()) return &it->second;
  if (required)
    note({.key = full(key), .where = place_, .message = full(key) + " is required but missing: " + doc});
  return nullptr;
}

void Reader::wrong(const std::string& key, const std::string& message) {
  note({.key = full(key),
        .where = place_of(*table_, key).value_or(place_),
        .message = full(key) + ": " + message});
}

Problem Reader::failure(const std::string& key, const std::string& message,
                        std::vector<std::string> rests_on) const {
  const Value* value = find(*table_, key);
  const bool whole = value == nullptr || std::holds_alternative<Table>(value->data);
  return {.kind = whole ? Problem::Kind::kJudgement : Problem::Kind::kWrong,
          .key = full(key),
          .where = place_of(*table_, key).value_or(place_),
          .message = full(key) + ": " + message,
          .rests_on = std::move(rests_on)};
}

void Reader::fail(const std::string& key, const std::string& message, std::vector<std::string> rests_on) {
  note(failure(key, message, std::move(rests_on)));
}

void Reader::fail_at(const Error& error, std::vector<std::string> rests_on) {
  const std::string_view key = leading_key(error.message);
  if (!key.empty()) return fail(std::string(key), error.message.substr(key.size() + 2), std::move(rests_on));
  note({.kind = Problem::Kind::kJudgement,
        .key = path_,
        .where = place_,
        .message = error.message,
        .rests_on = std::move(rests_on)});
}

void Reader::refuse(const std::string& key, const std::string& message) {
  note({.kind = Problem::Kind::kInapplicable,
        .key = full(key),
        .where = place_of(*table_, key).value_or(place_),
        .message = full(key) + ": " + message});
}

void Reader::keys_of(const std::string& key, const std::string& value, const std::string& chosen,
                     const std::function<void(Reader&)>& read) {
  owner_ = Owner{key, value, chosen};
  read(*this);
  owner_.reset();
}

void Reader::refuse_of(const Owner& owner, const std::string& key) {
  Problem problem = failure(
      key,
      "has no effect with " + owner.choice + " = \"" + owner.chosen + "\"; it applies only to " + owner.value,
      {full(owner.choice)});
  if (owner.choice == "kind") problem.kind = Problem::Kind::kInapplicable;
  problems_.add(std::move(problem));
}

std::int64_t Reader::integer(const std::string& key, std::optional<std::int64_t> fallback,
                             IntegerBounds bounds, const char* doc) {
  const Value* value =
      take(key, "integer, " + bounds_text(bounds), std::to_string(fallback.value_or(0)), doc, !fallback);
  if (value == nullptr) return fallback.value_or(bounds.min);
  const auto* number = std::get_if<std::int64_t>(&value->data);
  if (number == nullptr) {
    wrong(key, found_text(*value) + ", expected an integer");
  } else if (*number < bounds.min || *number > bounds.max) {
    wrong(key, std::to_string(*number) + " is out of range, expected " + bounds_text(bounds));
  } else {
    return *number;
  }
  return fallback.value_or(bounds.min);
}

double Reader::number(const std::string& key, std::optional<double> fallback, NumberBounds bounds,
                      const char* doc) {
  const Value* value =
      take(key, "float, " + bounds_text(bounds), number_text(fallback.value_or(0)), doc, !fallback);
  if (value == nullptr) return fallback.value_or(bounds.min);
  const std::optional<double> number = number_of(*value);
  if (!number) {
    wrong(key, found_text(*value) + ", expected a float");
    return fallback.value_or(bounds.min);
  }
  if (*number >= bounds.min && *number <= bounds.max) return *number;
  wrong(key, number_text(*number) + " is out of range, expected " + bounds_text(bounds));
  return fallback.value_or(bounds.min);
}

bool Reader::boolean(const std::string& key, std::optional<bool> fallback, const char* doc) {
  const Value* value = take(key, "boolean", fallback.value_or(false) ? "true" : "false", doc, !fallback);
  if (value == nullptr) return fallback.value_or(false);
  if (const auto* flag = std::get_if<bool>(&value->data)) return *flag;
  wrong(key, found_text(*value) + ", expected a boolean (true or false)");
  return fallback.value_or(false);
}

std::string Reader::text(const std::string& key, std::optional<std::string> fallback, const char* doc) {
  const Value* value = take(key, "string", "\"" + fallback.value_or("") + "\"", doc, !fallback);
  if (value == nullptr) return fallback.value_or("");
  if (const auto* text = std::get_if<std::string>(&value->data)) return *text;
  wrong(key, found_text(*value) + ", expected a string");
  return fallback.value_or("");
}

std::size_t Reader::choice(const std::string& key, const std::vector<std::string>& choices,
                           std::optional<std::size_t> fallback, const char* doc, const std::string& hint) {
  if (key == "kind") kinds_ = choices;
  const Value* value = take(key, "one of " + list_text(choices),
                            fallback ? "\"" + choices[*fallback] + "\"" : std::string(), doc, !fallback);
  if (value == nullptr) return fallback.value_or(0);
  const auto* text = std::get_if<std::string>(&value->data);
  if (text == nullptr) {
    wrong(key, found_text(*value) + ", expected one of " + list_text(choices));
    return fallback.value_or(0);
  }
  const auto it = std::find(choices.begin(), choices.end(), *text);
  if (it != choices.end()) return static_cast<std::size_t>(it - choices.begin());
  const auto close = suggestion(*text, choices);
  wrong(key, (is_missing(*value) ? found_text(*value) : "\"" + *text + "\" is not a known value") +
                 (close ? ", did you mean \"" + *close + "\"?" : "") + " (expected one of " +
                 list_text(choices) + ")" + (close || is_missing(*value) ? "" : hint));
  return fallback.value_or(0);
}

std::vector<std::int64_t> Reader::integers(const std::string& key,
                                           std::optional<std::vector<std::int64_t>> fallback,
                                           IntegerBounds bounds, const char* doc) {
  std::string shown = "[";
  for (const std::int64_t item : fallback.value_or(std::vector<std::int64_t>{}))
    shown += (shown.size() > 1 ? ", " : "") + std::to_string(item);
  const Value* value =
      take(key, "list of integers, each " + bounds_text(bounds), shown + "]", doc, !fallback);
  if (value == nullptr) return fallback.value_or(std::vector<std::int64_t>{});
  const auto* items = std::get_if<Array>(&value->data);
  if (items == nullptr) {
    wrong(key, found_text(*value) + ", expected a list of integers");
    return fallback.value_or(std::vector<std::int64_t>{});
  }
  std::vector<std::int64_t> numbers;
  for (const Value& item : *items) {
    const auto* number = std::get_if<std::int64_t>(&item.data);
    if (number == nullptr) {
      wrong(key, std::string("contains ") + type_name(item) + "; every item must be an integer");
    } else if (*number < bounds.min || *number > bounds.max) {
      wrong(key, std::to_string(*number) + " is out of range, expected " + bounds_text(bounds));
    } else {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

std::vector<double> Reader::numbers(const std::string& key, std::optional<std::vector<double>> fallback,
                                    NumberBounds bounds, const char* doc) {
  std::string shown = "[";
  for (const double item : fallback.value_or(std::vector<double>{}))
    shown += (shown.size() > 1 ? ", " : "") + number_text(item);
  const Value* value = take(key, "list of floats, each " + bounds_text(bounds), shown + "]", doc, !fallback);
  if (value == nullptr) return fallback.value_or(std::vector<double>{});
  const auto* items = std::get_if<Array>(&value->data);
  if (items == nullptr) {
    wrong(key, found_text(*value) + ", expected a list of floats");
    return fallback.value_or(std::vector<double>{});
  }
  std::vector<double> numbers;
  for (const Value& item : *items) {
    const std::optional<double> number = number_of(item);
    if (!number) {
      wrong(key, std::string("contains ") + type_name(item) + "; every item must be a float");
    } else if (!(*number >= bounds.min && *number <= bounds.max)) {
      wrong(key, number_text(*number) + " is out of range, expected " + bounds_text(bounds));
    } else {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

std::vector<std::string> Reader::texts(const std::string& key,
                                       std::optional<std::vector<std::string>> fallback, const char* doc) {
  std::string shown = "[";
  for (const std::string& item : fallback.value_or(std::vector<std::string>{}))
    shown += (shown.size() > 1 ? ", \"" : "\"") + item + "\"";
  const Value* value = take(key, "list of strings", shown + "]", doc, !fallback);
  if (value == nullptr) return fallback.value_or(std::vector<std::string>{});
  const auto* items = std::get_if<Array>(&value->data);
  if (items == nullptr) {
    wrong(key, found_text(*value) + ", expected a list of strings");
    return fallback.value_or(std::vector<std::string>{});
  }
  std::vector<std::string> texts;
  for (const Value& item : *items) {
    if (const auto* text = std::get_if<std::string>(&item.data))
      texts.push_back(*text);
    else
      wrong(key, std::string("contains ") + type_name(item) + "; every item must be a string");
  }
  return texts;
}

std::vector<Reader> Reader::tables(const std::string& key, const char* doc) {
  static const Table kEmpty;
  const Value* value = take(key, "list of tables", "[]", doc, false);
  if (docs_ != nullptr) return {Reader(kEmpty, full(key), place_, docs_)};
  if (value == nullptr) return {};
  const auto* items = std::get_if<Array>(&value->data);
  if (items == nullptr) {
    wrong(key, found_text(*value) + ", expected a list of tables");
    return {};
  }
  std::vector<Reader> readers;
  for (const Value& item : *items) {
    const std::string path = full(key) + "[" + std::to_string(readers.size()) + "]";
    const auto* table = std::get_if<Table>(&item.data);
    if (table == nullptr) {
      problems_.add({.key = path,
                     .where = item.where,
                     .message = path + ": found " + type_name(item) + ", expected a table"});
      return {};
    }
    readers.push_back(Reader(*table, path, item.where));
  }
  return readers;
}

bool Reader::has_list(const std::string& key) const {
  const auto it = table_->find(key);
  return applies() && it != table_->end() && std::holds_alternative<Array>(it->second.data);
}

Reader Reader::section(const std::string& key) {
  static const Table kEmpty;
  const bool known = std::ranges::find(known_, key) != known_.end();
  if (!known) known_.push_back(key);
  Reader below(kEmpty, full(key), place_, docs_);
  below.owner_ = owner_;
  const auto it = table_->find(key);
  if (it == table_->end()) return below;
  if (!applies()) {
    if (!known) refuse_of(*owner_, key);
    return below;
  }
  if (const auto* table = std::get_if<Table>(&it->second.data)) {
    below.table_ = table;
    below.place_ = it->second.where;
    return below;
  }
  wrong(key, found_text(it->second) + ", expected a table");
  below.instead_ = &it->second;
  return below;
}

void Reader::adopt(Reader& section) {
  section.find_unknown();
  if (section.instead_ != nullptr)
    if (const auto* word = std::get_if<std::string>(&section.instead_->data))
      if (const auto kind = suggestion(*word, section.kinds_))
        problems_.add_hint(section.path_, kind_hint(section.path_ + ".kind", *kind, section.instead_->where));
  if (!section.path_.ends_with(']')) {
    for (const std::string& key : section.known_) known_below_.push_back(section.full(key));
    std::ranges::move(section.known_below_, std::back_inserter(known_below_));
  }
  problems_.adopt(std::move(section.problems_));
}

void Reader::ignore(const std::string& key) { known_.push_back(key); }

void Reader::find_unknown() {
  for (const auto& [key, value] : *table_) {
    if (problems_.full()) return;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::vector<std::string> meant = keys_named(key, known_below_);
    if (meant.size() > kMostSuggested) meant.clear();
    if (const auto close = suggestion(key, known_); meant.empty() && close) meant.push_back(full(*close));
    problems_.add(
        {.kind = Problem::Kind::kInapplicable,
         .key = full(key),
         .where = value.where,
         .message = "unknown key " + full(key) +
                    (meant.empty() ? " (known keys: " + list_text(known_) + ")"
                                   : std::string(", did you mean ") + (meant.size() > 1 ? "one of " : "") +
                                         list_text(meant) + "?"),
         .suspects = std::move(meant)});
  }
}

std::vector<Problem> Reader::finish_problems() {
  find_unknown();
  return std::exchange(problems_, {}).reported();
}

Result<void> Reader::finish() { return to_result(finish_problems(), place_); }

Error at_key(const Document& document, Error error) {
  const std::string_view key = leading_key(error.message);
  if (key.empty()) return error;
  return std::move(error).with_prefix(place_of(document.root, key).value_or(document.name) + ": ");
}

}  // namespace fedge::config
