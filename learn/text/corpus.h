// Corpora: English text in groups that are clients by nature (a president, a topic, a part of the
// dictionary), each split for good into what is trained on and what is held out. corpus_names() lists them;
// docs/reference/datasets.md says what each is, its licence, how it is installed and how it is split.
// Read from files that the user has installed, never from the network. A corpus is the same everywhere, its
// groups in a fixed order. Nothing is believed of a file: at most 1 GiB each, 4 GiB in all, 100,000 groups,
// UTF-8 without NUL bytes. Loading the largest takes well under a second; while it is read
// memory holds it twice.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

struct TextGroup {
  std::string name;      // "abraham_lincoln", "noun.animal"
  std::string train;     // never empty
  std::string held_out;  // may be empty if the group is small
};

const std::vector<std::string>& corpus_names();

// `directory` holds the corpus' files; empty means where its package or scripts/data.sh puts them, except
// for "text", which is any directory of the user's. kNotFound with the path and what installs the file;
// kCorrupt with file and line; kResource if it is too large.
Result<std::vector<TextGroup>> load_corpus(const std::string& name, const std::string& directory);

}  // namespace fedge::learn
