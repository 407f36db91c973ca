// WordNet 3.0 (Fellbaum 1998) as definitions to learn: the synsets of data.noun, data.verb, data.adj and
// data.adv in the format of wndb(5WN), one line each,
//   Define dog, domestic dog, Canis familiaris: a member of the genus Canis ...
// in 45 groups, one for each of the lexicographers' files of lexnames(5WN), in their order. Every tenth of a
// group is held out. A line must stand at the byte that it names, so that no damage shifts a file unseen.
#pragma once

#include <vector>

#include "learn/text/corpus_files.h"

namespace fedge::learn {

// Groups without a synset are left out.
Result<std::vector<TextGroup>> load_wordnet(const CorpusPlace& place);

}  // namespace fedge::learn
