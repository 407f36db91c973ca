// A run file together with the contents of the files that it names: a base model's description, hash and
// tokenizer, and tensors of external models. A tokenizer beyond kMostInline bytes stays outside the document,
// which has its hash; the document is kept and sent in many places.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/result.h"

namespace fedge::run {

// Largest tokenizer, in bytes, that is a part of the document.
inline constexpr std::size_t kMostInline = std::size_t{48} << 10;

struct CompleteFile {
  config::Document document;
  std::vector<Error> errors = {};                     // from reading the named files
  std::shared_ptr<const std::string> tokenizer = {};  // the content that table_hash names; else null

  // The document's root with the tokenizer's content.
  config::Table whole() const;
};

// Hashes of the base models that run files name, by path: each file is read once.
using BaseHashes = std::map<std::string, Result<std::string>>;

CompleteFile complete(const config::Document& document, BaseHashes& known);

// Removes data.tokenizer.table if there is data.tokenizer.table_hash.
void drop_long_table(config::Table& root);

}  // namespace fedge::run
