#include "sim/transfers/device_files.h"

#include <doctest/doctest.h>

#include "sim/transfers/transfer_size.h"

using namespace fedge;
using sim::DeviceFiles;
using sim::transfer_size;

namespace {

// A model of four chunks, the last one shorter; `hashes` stand for their contents.
DeviceFiles::Manifest model_of(const std::vector<std::uint8_t>& hashes) {
  protocol::Manifest model{.payload_size = 4 * 4096 - 100, .chunk_size = 4096};
  for (const std::uint8_t hash : hashes) model.chunks.emplace_back().fill(hash);
  return std::make_shared<const protocol::Manifest>(std::move(model));
}

}  // namespace

TEST_CASE("device files: a download goes on with the chunks that have arrived whole") {
  const auto model = model_of({1, 2, 3, 4});
  DeviceFiles files;
  files.begin({.model = model, .chunks = {}});
  CHECK(files.missing() == transfer_size(*model, 0));
  files.arrived(transfer_size(*model, 0) - transfer_size(*model, 2) + Bytes(100));
  CHECK(files.held().count() == 2);
  files.restarted();
  files.begin({.model = model_of({1, 2, 3, 4}), .chunks = {}});
  CHECK(files.missing() == transfer_size(*model, 2));
  files.completed();
  CHECK(files.missing() == Bytes());
  // The device lost the result of its training, but not the model.
  files.begin({.model = model, .chunks = {}});
  CHECK(files.missing() == Bytes());
  CHECK_FALSE(files.update_kept());
}

TEST_CASE("device files: a control variate comes after its model, and only chunks that are needed count") {
  const auto model = model_of({1, 2, 3, 4});
  const auto control = model_of({5, 6, 7, 8});
  DeviceFiles files;
  files.begin({.model = model, .chunks = {true, false, false, true}, .control = control});
  const Bytes first = transfer_size(*model, 3) + sim::transfer_size_of(*model, 0);
  CHECK(files.missing() == first + transfer_size(*control, 0));
  files.arrived(first + sim::transfer_size_of(*control, 0));
  CHECK(files.held().count() == 2);
  files.begin({.model = model, .chunks = {true, false, false, true}, .control = control});
  CHECK(files.missing() == transfer_size(*control, 1));
}

TEST_CASE("device files: a model that is exchanged with other clients stays until the next one is known") {
  const auto model = model_of({1, 2, 3, 4});
  DeviceFiles files;
  for (const bool restarts : {false, true}) {
    files.begin({.model = model, .chunks = {}});
    files.completed();
    CHECK(files.update_kept(true));
    if (restarts) files.restarted();
    files.begin({.model = model, .chunks = {}});
    CHECK(files.missing() == (restarts ? transfer_size(*model, 0) : Bytes()));
  }
  files.completed();
  CHECK(files.update_kept(true));
  const auto second = model_of({1, 2, 9, 4});
  files.begin({.model = second, .chunks = {}});
  CHECK(files.missing() == transfer_size(*second, 0));
  files.completed();
  CHECK_FALSE(files.update_kept(false));
}

TEST_CASE("device files: another model removes the former one, unless most of it stays constant") {
  const auto first = model_of({1, 2, 3, 4});
  const auto second = model_of({1, 2, 9, 4});
  DeviceFiles files;
  files.begin({.model = first, .chunks = {}});
  files.completed();
  files.begin({.model = second, .chunks = {}});
  CHECK(files.missing() == transfer_size(*second, 0));

  DeviceFiles frozen;
  frozen.begin({.model = first, .chunks = {}, .frozen = true});
  frozen.completed();
  CHECK(frozen.update_kept());
  frozen.begin({.model = second, .chunks = {}, .frozen = true});
  CHECK(frozen.missing() == sim::transfer_size_of(*second, 2));
  // A process that starts again does not know which chunks two models have in common.
  frozen.restarted();
  frozen.begin({.model = first, .chunks = {}, .frozen = true});
  CHECK(frozen.missing() == transfer_size(*first, 0));
}
