#include "run/file/complete_file.h"

#include <string_view>
#include <utility>

#include "core/crypto/sha256.h"
#include "learn/model_file.h"
#include "learn/models/external.h"
#include "learn/text/text_data.h"
#include "protocol/limits.h"

namespace fedge::run {
namespace {

config::Table* table_at(config::Table& root, const char* name) {
  const auto section = root.find(name);
  return section == root.end() ? nullptr : std::get_if<config::Table>(&section->second.data);
}

const std::string* named_file(const config::Table& table, const char* name) {
  const auto value = table.find(name);
  const auto* text = value == table.end() ? nullptr : std::get_if<std::string>(&value->second.data);
  return text == nullptr || text->empty() ? nullptr : text;
}

// Fixes the base model at the first reading of the run file: later readers must find the same base.
Result<void> add_base_hash(config::Table& root, BaseHashes& known) {
  config::Table* model = table_at(root, "model");
  const std::string* base = model == nullptr ? nullptr : named_file(*model, "base");
  if (base == nullptr || model->contains("base_hash")) return {};
  if (!known.contains(*base)) known.emplace(*base, learn::base_hash(*base));
  const Result<std::string>& hash = known.at(*base);
  if (!hash) return hash.error().with_prefix("model.base: ");
  model->emplace("base_hash", config::Value{*hash, "model.base"});
  return {};
}

// Adds what the base's description says: [model] if the run file names no kind, and the tokenizer if it names
// none.
Result<void> add_base_model(config::Table& root) {
  config::Table* model = table_at(root, "model");
  const std::string* base = model == nullptr ? nullptr : named_file(*model, "base");
  if (base == nullptr || model->contains("kind")) return {};
  auto description = learn::describe_base(*base);
  if (!description) return description.error().with_prefix("model.base: ");
  const auto add = [](const config::Table& from, config::Table& to) {
    for (const auto& [key, value] : from) to.emplace(key, config::Value{value.data, "model.base"});
  };
  add(description->model, *model);
  if (!description->tokenizer) return {};
  config::Value& data = root["data"];
  if (!std::holds_alternative<config::Table>(data.data)) return {};
  config::Table& section = std::get<config::Table>(data.data);
  if (section.contains("tokenizer")) return {};
  config::Table tokenizer;
  add(*description->tokenizer, tokenizer);
  section.emplace("tokenizer", config::Value{std::move(tokenizer), "model.base"});
  return {};
}

// Embeds the tensors of an external model, because only this machine has its file.
Result<void> add_tensors(config::Table& root) {
  config::Table* model = table_at(root, "model");
  const std::string* base = model == nullptr ? nullptr : named_file(*model, "base");
  const std::string* kind = model == nullptr ? nullptr : named_file(*model, "kind");
  if (base == nullptr || kind == nullptr || !learn::is_external({.kind = *kind}) ||
      model->contains("tensors"))
    return {};
  auto texts = learn::tensor_texts(*base);
  if (!texts) return texts.error().with_prefix("model.base: ");
  config::Array tensors;
  for (std::string& text : *texts) tensors.push_back({std::move(text), "model.base"});
  model->emplace("tensors", config::Value{std::move(tensors), "model.base"});
  return {};
}

config::Table* tokenizer_at(config::Table& root) {
  config::Table* data = table_at(root, "data");
  return data == nullptr ? nullptr : table_at(*data, "tokenizer");
}

Result<std::string> read_table(const config::Table& tokenizer, const std::string& file) {
  const std::string* kind = named_file(tokenizer, "kind");
  const bool published = kind != nullptr && *kind == "vocabulary";
  return learn::read_tokenizer_table(
      published ? learn::TokenizerKind::kVocabulary : learn::TokenizerKind::kBpe, file,
      protocol::kMaxTokenizer);
}

// Embeds the tokenizer table, because only this machine has its file. Clients and run results need the table.
Result<void> add_tokenizer_table(config::Table& root) {
  config::Table* tokenizer = tokenizer_at(root);
  const std::string* file = tokenizer == nullptr ? nullptr : named_file(*tokenizer, "file");
  if (file == nullptr || tokenizer->contains("table") || tokenizer->contains("table_hash")) return {};
  auto text = read_table(*tokenizer, *file);
  if (!text) return text.error().with_prefix("data.tokenizer.file: ");
  tokenizer->emplace("table", config::Value{std::move(*text), "data.tokenizer.file"});
  return {};
}

// The table of the base's tokenizer, or else that of data.tokenizer.file.
Result<std::string> named_table(config::Table& root, const config::Table& tokenizer) {
  config::Table* model = table_at(root, "model");
  if (const std::string* base = model == nullptr ? nullptr : named_file(*model, "base")) {
    auto description = learn::describe_base(*base);
    if (!description) return description.error().with_prefix("model.base: ");
    const std::string* table =
        description->tokenizer ? named_file(*description->tokenizer, "table") : nullptr;
    if (table != nullptr) return *table;
  }
  const std::string* file = named_file(tokenizer, "file");
  if (file == nullptr)
    return invalid(
        "data.tokenizer.table_hash: neither model.base nor data.tokenizer.file names the file of this "
        "tokenizer");
  auto text = read_table(tokenizer, *file);
  if (!text) return text.error().with_prefix("data.tokenizer.file: ");
  return text;
}

// Whether the run file names a file that has the tokenizer, so that the document need not contain it.
bool names_tokenizer(config::Table& root, const config::Table& tokenizer) {
  const config::Table* model = table_at(root, "model");
  return named_file(tokenizer, "file") != nullptr ||
         (model != nullptr && named_file(*model, "base") != nullptr);
}

// Takes a long tokenizer out of the document, or finds the one that the document's hash names.
Result<void> take_out_tokenizer(CompleteFile& file) {
  config::Table& root = file.document.root;
  config::Table* tokenizer = tokenizer_at(root);
  if (tokenizer == nullptr) return {};
  if (const std::string* table = named_file(*tokenizer, "table")) {
    if (table->size() <= kMostInline || tokenizer->contains("table_hash") ||
        !names_tokenizer(root, *tokenizer))
      return {};
    file.tokenizer = std::make_shared<const std::string>(*table);
    const std::string where = tokenizer->at("table").where;
    tokenizer->erase("table");
    tokenizer->emplace("table_hash", config::Value{to_hex(sha256(*file.tokenizer)), where});
    return {};
  }
  const std::string* hash = named_file(*tokenizer, "table_hash");
  if (hash == nullptr) return {};
  FEDGE_TRY(table, named_table(root, *tokenizer));
  if (const std::string found = to_hex(sha256(table)); found != *hash)
    return invalid("data.tokenizer.table_hash: the tokenizer that the run started with has the hash " +
                   *hash + ", but the named file now has one with " + found + "; restore the original file");
  file.tokenizer = std::make_shared<const std::string>(std::move(table));
  return {};
}

}  // namespace

config::Table CompleteFile::whole() const {
  config::Table root = document.root;
  config::Table* found = tokenizer ? tokenizer_at(root) : nullptr;
  if (found != nullptr && found->contains("table_hash"))
    found->emplace("table", config::Value{*tokenizer, found->at("table_hash").where});
  return root;
}

CompleteFile complete(const config::Document& document, BaseHashes& known) {
  CompleteFile file{{.name = document.name, .root = document.root}};
  config::Table& root = file.document.root;
  for (const auto& added : {add_base_model(root), add_tokenizer_table(root), add_base_hash(root, known),
                            add_tensors(root), take_out_tokenizer(file)})
    if (!added) file.errors.push_back(added.error());
  return file;
}

void drop_long_table(config::Table& root) {
  config::Table* tokenizer = tokenizer_at(root);
  if (tokenizer != nullptr && tokenizer->contains("table_hash")) tokenizer->erase("table");
}

}  // namespace fedge::run
