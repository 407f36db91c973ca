// WordNet 3.0 (Fellbaum 1998) as definitions to learn. Each synset of data.noun, data.verb, data.adj and
// data.adv (format: wndb(5WN)) becomes one line:
//   Define dog, domestic dog, Canis familiaris: a member of the genus Canis ...
// There are 45 groups, one for each lexicographer file of lexnames(5WN), in that order. Every tenth synset of
// a group is held out. Each line must be at the byte offset that it declares, so that a damaged file is
// detected.
#pragma once

#include <vector>

#include "learn/text/corpus_files.h"

namespace fedge::learn {

// Groups without a synset are left out.
Result<std::vector<TextGroup>> load_wordnet(const CorpusPlace& place);

}  // namespace fedge::learn
