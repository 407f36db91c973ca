// Published models that lie, are broken, or would be computed differently: each is refused with the reason.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/platform/files.h"
#include "learn/weights/import.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::test::contains;
using learn::test::TemporaryDirectory;

namespace {

const std::filesystem::path kFolders =
    std::filesystem::path(FEDGE_SOURCE_DIR) / "tests" / "reference" / "published";

// A copy of a published folder in which a text of one file is replaced.
class ChangedFolder {
 public:
  explicit ChangedFolder(const std::string& family) {
    std::filesystem::copy(kFolders / family, path(), std::filesystem::copy_options::recursive);
  }
  std::filesystem::path path() const { return directory_.path() / "model"; }
  void change(const std::string& file, const std::string& old, const std::string& with) const {
    auto text = read_file(path() / file, 1 << 20);
    REQUIRE(text.has_value());
    const std::size_t at = text->find(old);
    REQUIRE_MESSAGE(at != std::string::npos, old);
    REQUIRE(write_file_atomic(path() / file, text->replace(at, old.size(), with)));
  }
  void check_refused(const std::string& words) const {
    const auto made = import_model(path(), {});
    REQUIRE_FALSE(made.has_value());
    CHECK_MESSAGE(contains(made.error().message, words), made.error().message);
  }

 private:
  TemporaryDirectory directory_;
};

void check_config(const std::string& family, const std::string& old, const std::string& with,
                  const std::string& words) {
  const ChangedFolder folder(family);
  folder.change("config.json", old, with);
  folder.check_refused(words);
}

}  // namespace

TEST_CASE("refused models: a key that changes what the model computes is named") {
  check_config("llama", "\"silu\"", "\"gelu\"",
               "config.json: hidden_act is \"gelu\", which Fedge does not compute");
  check_config("llama", "\"attention_bias\": false", "\"attention_bias\": true", "attention_bias is true");
  check_config("llama", "\"rope_type\": \"llama3\"", "\"rope_type\": \"yarn\"", "of the type \"yarn\"");
  check_config("llama", "\"head_dim\": 4", "\"head_dim\": 8",
               "head_dim is not hidden_size / num_attention_heads");
  check_config("llama", "\"model_type\": \"llama\"", "\"model_type\": \"qwen3\"", "model_type is \"qwen3\"");
  check_config("llama", "\"model_type\": \"llama\"", "\"model_type\": \"mistral\", \"sliding_window\": 128",
               "sliding_window is 128");
  check_config("gpt2", "\"gelu_new\"", "\"relu\"", "activation_function is \"relu\"");
  check_config("gpt2", "1e-05", "1e-06", "layer_norm_epsilon is 1e-06");
}

TEST_CASE("refused models: sizes that the files do not have are named") {
  check_config("llama", "\"hidden_size\": 16", "\"hidden_size\": 0", "hidden_size is not a size");
  check_config("llama", "\"hidden_size\": 16", "\"hidden_size\": 32", "");
  check_config("llama", "\"intermediate_size\": 24", "\"intermediate_size\": 25",
               "is 24 x 16, which does not suit block1.mlp.gate.weight of 25 x 16");
  check_config("llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
               "the tensor layers.2.input_layernorm.weight is missing");
  check_config("llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2e30",
               "num_hidden_layers is not a size");
  check_config("llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 257",
               "num_hidden_layers is above 256");
  check_config("gpt2", "\"n_layer\": 2", "\"n_layer\": 257", "n_layer is above 256");
  check_config("llama", "\"vocab_size\": 323", "\"vocab_size\": 16000000", "but the embedding has 323 rows");
  check_config("llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "");
  check_config("llama", "\"bos_token_id\": 1", "\"bos_token_id\": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]",
               "is not a JSON object");
}

TEST_CASE("refused models: numbers that no run file may have are found before anything is written") {
  check_config("llama", "\"rope_theta\": 500.0", "\"rope_theta\": 1e300", "model.rope_theta: 1e+300 is out");
  check_config("llama", "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 7.5", "model.norm_epsilon: 7.5 is out");
}

TEST_CASE("refused models: an index of shards cannot name a file outside the folder") {
  const ChangedFolder folder("llama");
  folder.change("model.safetensors.index.json", "model-00001-of-00002.safetensors", "../secret.safetensors");
  folder.check_refused("\"../secret.safetensors\" is no file name");
  const ChangedFolder absolute("llama");
  absolute.change("model.safetensors.index.json", "model-00001-of-00002.safetensors", "/etc/hostname");
  absolute.check_refused("\"/etc/hostname\" is no file name");
}

TEST_CASE("refused models: a folder whose weights are a pickle is refused, and the pickle is not read") {
  const ChangedFolder folder("gpt2");
  std::filesystem::rename(folder.path() / "model.safetensors", folder.path() / "pytorch_model.bin");
  folder.check_refused("model.safetensors");
}

TEST_CASE("refused models: a missing shard, a cut shard and a broken tokenizer are named") {
  {
    const ChangedFolder folder("llama");
    std::filesystem::remove(folder.path() / "model-00002-of-00002.safetensors");
    folder.check_refused("model-00002-of-00002.safetensors");
  }
  {
    const ChangedFolder folder("gpt2");
    std::filesystem::resize_file(folder.path() / "model.safetensors", 20'000);
    folder.check_refused("is larger than the file");
  }
  {
    const ChangedFolder folder("gpt2");
    folder.change("tokenizer.json", "\"ByteLevel\"", "\"Whitespace\"");
    folder.check_refused("the pre-tokenizer Whitespace in this place");
  }
  {
    const ChangedFolder folder("gpt2");
    std::filesystem::remove(folder.path() / "tokenizer.json");
    folder.check_refused("there is neither tokenizer.json nor tokenizer.model");
  }
}

TEST_CASE("refused models: a GGUF file that was cut is refused before a weight is read") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "cut.gguf";
  std::filesystem::copy(kFolders / "llama.gguf", path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  const auto opened = open_published(path, {});
  REQUIRE_FALSE(opened.has_value());
  CHECK_MESSAGE(contains(opened.error().message, "is larger than the file"), opened.error().message);
}

TEST_CASE("refused models: a GGUF file of 2 kB that claims more blocks than a model may have is refused") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "blocks.gguf";
  std::filesystem::copy(std::filesystem::path(FEDGE_SOURCE_DIR) / "tests/fuzz/corpus/gguf/many_blocks", path);
  const auto opened = open_published(path, {});
  REQUIRE_FALSE(opened.has_value());
  CHECK_MESSAGE(contains(opened.error().message, "block_count is above 256"), opened.error().message);
}

TEST_CASE("refused models: a value that is not finite is found in the tensor that has it") {
  const ChangedFolder folder("gpt2");
  auto bytes = read_file(folder.path() / "model.safetensors", 1 << 20);
  REQUIRE(bytes.has_value());
  bytes->replace(bytes->size() - 2, 2, "\xff\x7f");  // a NaN of binary16
  REQUIRE(write_file_atomic(folder.path() / "model.safetensors", *bytes));
  folder.check_refused("holds a value that is not finite");
}

TEST_CASE("refused models: a context beyond the model's, or a path that is no model") {
  const auto longer = import_model(kFolders / "llama", {.tokenizer = {}, .adapters = {}, .context = 65});
  REQUIRE_FALSE(longer.has_value());
  CHECK(contains(longer.error().message, "--context: 65 tokens are more than the 64 of"));
  const auto other = import_model(kFolders / "make.py", {});
  REQUIRE_FALSE(other.has_value());
  CHECK(contains(other.error().message, "not a published model"));
  CHECK_FALSE(import_model("/nowhere", {}).has_value());
}
