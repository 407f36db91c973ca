// The run that a fault test disturbs: its run file and its data.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/rng.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

struct Setting {
  const char* name;
  std::string strategy;  // end of the run file: keys of [training], and sections
  std::size_t clients = 2;
  std::size_t rounds = 2;
  bool clients_die = true;  // false if an asynchronous run would give a disconnected client another task
  std::string model = "kind = \"softmax\"";
  bool texts = false;  // the data are texts, one for each client; else images
};

// Split training: a language model of three blocks, of which each client runs some.
inline Setting split_setting(std::size_t clients, std::size_t rounds) {
  return {"split",
          "local_steps = 30\noptimizer = { kind = \"adamw\", learning_rate = 0.01 }\n[strategy]\n"
          "kind = \"splitft\"\nplanner = { cut = \"random\" }\n",
          clients,
          rounds,
          true,
          "kind = \"llama\"\nlayers = 3\nwidth = 16\nheads = 2\nadapter = { rank = 4 }",
          true};
}

// Writes a text of random words for each client.
inline void write_texts(const learn::test::TemporaryDirectory& directory, std::size_t clients) {
  const std::vector<std::string> words = {"the ", "sea ", "was ", "calm ", "and ", "old ", "men ", "went. "};
  Rng rng(3);
  for (std::size_t client = 0; client < clients; ++client) {
    std::string text;
    while (text.size() < 1000) text += words[rng.below(words.size())];
    directory.write(std::string(1, static_cast<char>('a' + client)) + ".txt", {text.begin(), text.end()});
  }
}

// Writes the data into `dataset`, and a run file that uses them.
inline void write_run(const Setting& setting, const std::filesystem::path& file,
                      const learn::test::TemporaryDirectory& dataset) {
  if (setting.texts)
    write_texts(dataset, setting.clients);
  else
    write_tiny_dataset(dataset);
  const std::string data =
      setting.texts
          ? "\"\ndataset = \"text\"\ncontext = 16\nvalidation = 0.1\npartition = { kind = \"natural\", "
          : "\"\npartition = { ";
  const std::string clients = std::to_string(setting.clients);
  REQUIRE(write_file_atomic(
      file, "[run]\nname = \"faults\"\nrounds = " + std::to_string(setting.rounds) +
                "\nseed = 5\nchunk_size = 8192\nwait_for_clients = " + clients + "\n[model]\n" +
                setting.model + "\n[data]\ndirectory = \"" + dataset.path().string() + data +
                "clients = " + clients + " }\n[sampling]\nclients_per_round = " + clients +
                "\nmin_available = " + clients + "\n[training]\nbatch_size = 5\n" + setting.strategy));
}

}  // namespace fedge::test
