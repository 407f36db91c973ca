// ROUGE-L (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section 3.1): the part of a
// reference's words that a text contains in the same order, by the longest common subsequence (LCS). Words
// are separated by whitespace and keep their punctuation; ASCII case is ignored; there is no stemming. Pure.
// Time: product of the numbers of words; memory: the smaller of them.
#pragma once

#include <string_view>

namespace fedge::learn {

struct RougeScore {
  double recall = 0;     // R = LCS / words of the reference
  double precision = 0;  // P = LCS / words of the hypothesis
  double f = 0;          // (1 + beta^2) R P / (R + beta^2 P) with beta = 1
};

// All values are 0 if either text has no words.
RougeScore rouge_l(std::string_view hypothesis, std::string_view reference);

}  // namespace fedge::learn
