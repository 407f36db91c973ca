// Splitters: how published tokenizers divide a text into the words within which tokens are merged. Each is
// the regular expression of a family, matched by hand over Unicode's letters, numbers and white space
// (unicode_classes.h). Bytes that are not UTF-8 count as one character each, neither letter nor number.
// Concatenating all words gives the text. Pure functions; linear, except that kWhole returns everything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedge::learn {

enum class Splitter {
  kFedge,   // words.h; the tables that `fedge data tokenizer` learns
  kWhole,   // no words: merges may reach over the whole text
  kSpaces,  // before each run of spaces; for vocabularies in which no token has a space after another
            // character
  kGpt2,    // Radford et al. 2019
  kDigits,  // the same, after each number's digits have been separated (SmolLM)
  kLlama3,  // Llama 3, GPT-4: up to three digits together
  kQwen2,   // the same with single digits
};

// The names in a vocabulary's text.
const std::vector<std::string>& splitter_names();

// The first word; empty only if the text is.
std::string_view split_word(Splitter splitter, std::string_view text);

}  // namespace fedge::learn
