// The table of data sets by name. To add one, write a DataSource beside fashion_mnist.cc and a line in
// kinds.cc. A program outside this repository calls register_dataset() (examples/custom_dataset).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"

namespace fedge::learn {

struct DatasetTraits {
  bool text = false;  // samples are windows of tokens; data.context and data.tokenizer apply
  // Its samples are in files of the user, so that a path must be given; data.split applies.
  bool files = false;
};

struct DatasetKind {
  const char* name;     // data.dataset in the run file
  const char* paper;    // publication
  const char* summary;  // one line
  DatasetTraits traits;
  // Reads every option of the data set from [data]. It is also called, with defaults, if the run file selects
  // another data set: to know the names of the options.
  std::shared_ptr<const DataSource> (*read)(config::Reader& section);
  bool own = false;  // set by register_dataset()
};

// The first is the default.
std::span<const DatasetKind> dataset_kinds();
// Null if there is no data set of this name.
const DatasetKind* find_dataset_kind(const std::string& name);
// Adds a data set to the table. Call it at the start of main(), before anything reads the table. The name
// must be new, and no member null; otherwise the program ends with a message and exit code 1.
void register_dataset(const DatasetKind& kind);

// Reads data.dataset.
void choose_dataset_kind(config::Reader& section, DataSpec& spec);
// Reads the options of all data sets: those of others than the chosen one are refused. Call it after all
// other keys of the section have been read: an option may have the name of one of them.
void read_dataset_options(config::Reader& section, DataSpec& spec);
// The source that was read with the spec, or one with default options if the spec was not read from a file.
// kNotFound: there is no data set of this name.
Result<std::shared_ptr<const DataSource>> source_of(const DataSpec& spec);

}  // namespace fedge::learn
