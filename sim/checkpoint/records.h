// Records of what a simulation's trainings have given: in the log of a checkpoint and between ranks.
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "sim/training/trained_update.h"

namespace fedge::checkpoint::v1 {
class Failure;
class Record_Training;
}  // namespace fedge::checkpoint::v1

namespace fedge::sim {

void put(checkpoint::v1::Failure& out, const Error& error);
Error error_of(const checkpoint::v1::Failure& failure);

// Writes the result of a task without its values.
void put(checkpoint::v1::Record_Training& out, ClientId client, const TrainedUpdate& update);
TaskId task_of(const checkpoint::v1::Record_Training& record);
// Reads it, without coverage, layout and chunks.
TrainedUpdate training_of(const checkpoint::v1::Record_Training& record);

}  // namespace fedge::sim
