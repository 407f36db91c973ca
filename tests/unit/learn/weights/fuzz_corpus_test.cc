// The corpora of the fuzz targets of published language models, in every build.
#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/language_targets.h"

namespace fedge::fuzz {

TEST_CASE("fuzz corpus: vocabularies, whole and cut short, are refused or read back as they were") {
  CHECK(replay("vocabulary", feed_vocabulary) >= 6);
}

TEST_CASE("fuzz corpus: files of tokenizers, whole and cut short, are refused or lose no text") {
  CHECK(replay("tokenizer_file", feed_tokenizer_file, Cuts::kNone) >= 10);
}

TEST_CASE("fuzz corpus: GGUF files, whole and cut short, are refused or have all parameters") {
  CHECK(replay("gguf", feed_gguf) >= 8);
}

TEST_CASE("fuzz corpus: tensors of safetensors files are refused or lie in the file") {
  CHECK(replay("tensor_table", feed_tensor_table) >= 8);
}

}  // namespace fedge::fuzz
