// The table of model kinds by name. To add one, write a file beside dense.cc and a line in kinds.cc. A
// program outside this repository calls register_model() (examples/custom_model).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/config/reader.h"
#include "learn/model.h"
#include "learn/spec.h"

namespace fedge::learn {

// The abilities of a model kind. Combinations that it cannot are refused before a run starts.
struct ModelTraits {
  bool texts = false;     // its inputs are the tokens of a text; false: floats
  bool adapters = false;  // it has layers that can have adapters (model.adapter)
  bool either = false;    // its inputs can be floats as well as tokens
  bool external = false;  // only a trainer program can compute it (learn/models/external.h)
};

struct ModelKind {
  const char* name;     // model.kind in the run file
  const char* paper;    // publication
  const char* summary;  // one line
  ModelTraits traits;
  // Reads every option of the kind from [model]. Built-in kinds store their options in `spec`, own kinds in
  // the factory. It is also called, with defaults, if the run file selects another kind: to know the names of
  // the options.
  ModelFactory (*read)(config::Reader& section, ModelSpec& spec);
  bool own = false;  // set by register_model()
};

// kInvalid, naming the key, if a count is above 2^32: a mistake in a run file must not exhaust the machine's
// memory. 2^32 parameters are 16 GiB of float32.
Result<void> bounded(double count, const char* key, const char* what = "parameters");

std::span<const ModelKind> model_kinds();
// "a cnn", "a list of layers", for messages.
std::string with_article(const ModelKind& kind);
// Null if there is no kind of this name.
const ModelKind* find_model_kind(const std::string& name);
// Adds a kind to the table. Call it at the start of main(), before anything reads the table. The name must be
// new, and no member null; otherwise the program ends with a message and exit code 1.
void register_model(const ModelKind& kind);

// Reads model.kind.
void choose_model_kind(config::Reader& section, ModelSpec& spec);
// Reads the options of all kinds: those of other kinds than the chosen one are refused. Call it after all
// other keys of the section have been read: an option may have the name of one of them.
void read_model_options(config::Reader& section, ModelSpec& spec);
// The factory of the spec: the one that was read with it, or the kind's own one if it was not read from a
// file.
ModelFactory factory_of(const ModelKind& kind, const ModelSpec& spec);

}  // namespace fedge::learn
