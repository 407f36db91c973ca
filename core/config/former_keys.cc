#include "core/config/former_keys.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace fedge::config {
namespace {

bool is_set(const Value& value) {
  if (value.where.starts_with("--set ")) return true;
  const auto* table = std::get_if<Table>(&value.data);
  return table != nullptr &&
         std::ranges::any_of(*table, [](const auto& item) { return is_set(item.second); });
}

// The table that holds the key, and the key's name in it; null if absent.
std::pair<Table*, std::string> holder_of(Table& root, const std::string& key) {
  Table* table = &root;
  std::size_t begin = 0;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', begin)) {
    const auto found = table->find(key.substr(begin, dot - begin));
    table = found == table->end() ? nullptr : std::get_if<Table>(&found->second.data);
    if (table == nullptr) return {nullptr, {}};
    begin = dot + 1;
  }
  return {table, key.substr(begin)};
}

// The document with the kinds that the file itself sets.
Document former_of(const Document& document) {
  Document former = document;
  for (const KindChange& change : document.kind_changes) {
    const auto [table, name] = holder_of(former.root, change.key);
    if (table == nullptr) continue;
    if (change.former)
      (*table)[name] = *change.former;
    else
      table->erase(name);
  }
  return former;
}

// The kind, changed by --set, that governs this key, if any.
std::optional<std::string> changed_kind(const Problem& problem, const Document& document) {
  for (const std::string& key : problem.governed_by)
    if (std::ranges::find(document.kind_changes, key, &KindChange::key) != document.kind_changes.end())
      return key;
  return std::nullopt;
}

std::string text_at(const Table& root, const std::string& key) {
  const Value* value = find(root, key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
  return text == nullptr ? std::string() : *text;
}

}  // namespace

FormerKeysDropped drop_former_keys(const Document& document, const FindProblems& find_problems) {
  FormerKeysDropped out{document, {}};
  if (document.kind_changes.empty()) return out;
  std::set<std::string> wrong_before;
  for (const Problem& problem : find_problems(former_of(document))) wrong_before.insert(problem.key);
  for (bool dropped = true; dropped;) {  // dropping a key may make more keys inapplicable
    dropped = false;
    for (const Problem& problem : find_problems(out.document)) {
      const auto kind = changed_kind(problem, document);
      if (!kind || wrong_before.contains(problem.key)) continue;
      const auto [table, name] = holder_of(out.document.root, problem.key);
      const auto value = table == nullptr ? Table::iterator() : table->find(name);
      if (table == nullptr || value == table->end() || is_set(value->second)) continue;
      out.notes.push_back(value->second.where + ": `" + problem.key + "` does not apply to " + *kind + " = " +
                          text_at(document.root, *kind) + " and is ignored because --set changed the kind");
      table->erase(value);
      dropped = true;
    }
  }
  return out;
}

}  // namespace fedge::config
