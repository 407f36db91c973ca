// Corpora: English texts in natural groups that can be clients (a president, a topic, a part of the
// dictionary). Each group has a fixed training part and held-out part. The data sets that are texts
// (learn/data/kinds.cc) are corpora; docs/reference/datasets.md describes their content, licence,
// installation and split. Files must be installed; nothing is downloaded. The result and the order of its
// groups are the same on every machine. Limits: 1 GiB per file, 4 GiB in all, 100,000 groups; files must be
// UTF-8 without NUL bytes. Loading the largest corpus takes well under a second and twice its size in memory.
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

// `directory` holds the corpus' files. Empty: the default directory of its package or of scripts/data.sh; the
// corpus "text" has none. kNotFound names the path and what installs it; kCorrupt names file and line;
// kResource: a limit is exceeded.
Result<std::vector<TextGroup>> load_corpus(const std::string& name, const std::string& directory);

}  // namespace fedge::learn
