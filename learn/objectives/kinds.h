// The table of objectives by name. To add one, write an Objective and a line in kinds.cc. A program outside
// this repository calls register_objective().
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/config/reader.h"
#include "learn/objectives/objective.h"
#include "learn/spec.h"

namespace fedge::learn {

struct ObjectiveKind {
  const char* name;     // training.objective.kind in the run file
  const char* paper;    // publication
  const char* summary;  // one line
  // Reads every option of the kind from [training.objective]. Built-in kinds store their options in `spec`,
  // own kinds in the factory. A factory may return null: the objective adds no gradient of its own. It is
  // also called, with defaults, if the run file selects another kind: to know the names of the options.
  ObjectiveFactory (*read)(config::Reader& section, ObjectiveSpec& spec);
  bool own = false;  // set by register_objective()
};

// The first is the default.
std::span<const ObjectiveKind> objective_kinds();
// Null if there is no kind of this name.
const ObjectiveKind* find_objective_kind(const std::string& name);
// Adds an objective to the table. Call it at the start of main(), before anything reads the table. The name
// must be new, and no member null; otherwise the program ends with a message and exit code 1.
void register_objective(const ObjectiveKind& kind);

// Reads kind and the options of all kinds: those of other kinds than the chosen one are refused.
ObjectiveSpec read_objective(config::Reader& section);
// The objective of the spec. Null: none but the loss.
std::shared_ptr<const Objective> objective_of(const ObjectiveSpec& spec);

}  // namespace fedge::learn
