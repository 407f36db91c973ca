// Neighbour: how a peer stands to one to whom it has a link, for all objects together. A plain record; Peer
// keeps it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/time.h"

namespace fedge::swarm {

struct Neighbour {
  bool choked = true;        // by it
  bool interested = false;   // it is, in what is here
  bool choking = true;       // it
  bool interesting = false;  // it has been told so
  std::size_t unsent = 0;    // bytes handed to its link and not written
  // Chunks in this second and in the last one.
  std::size_t arrivals = 0;
  std::size_t arrivals_before = 0;
  std::uint64_t sent = 0;      // bytes since the last choice of slots
  std::uint64_t received = 0;  // likewise
  Time heard{};                // when it last sent a chunk, or was asked while nothing was under way
  Time wait_until{};           // its link has no credit left for requests
  std::size_t asked_bytes = 0;
  std::size_t asked = 0;  // chunks
  std::size_t bad = 0;
  std::size_t strikes = 0;
  bool dropped = false;
};

}  // namespace fedge::swarm
