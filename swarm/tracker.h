// Tracker: the coordinator's list of who exchanges an object with whom, and for how long. A newcomer gets
// random members as neighbours, and they get the newcomer. Members that accept no connections are only paired
// with members that do. A member may continue to serve the object after its task is done: a swarm ends with
// its last task. The tracker handles no chunks. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "core/rng.h"
#include "protocol/messages.h"

namespace fedge::swarm {

class Tracker {
 public:
  struct Tell {
    ClientId to;
    protocol::SwarmMembers message;
  };
  // Adds a member for one task, with up to `neighbours` neighbours. Returns the messages to send, in order:
  // members first, so that they know the newcomer when it connects. A member that joins again gets new
  // neighbours.
  std::vector<Tell> join(const protocol::ObjectId& object, const protocol::SwarmMember& newcomer,
                         std::size_t neighbours, Rng rng);
  // Ends one task of this member. True if it was the last, so that the swarm is over.
  bool done(const protocol::ObjectId& object, ClientId member);
  struct Left {
    std::vector<Tell> tells;
    std::vector<protocol::ObjectId> over;
  };
  // The member has disconnected: removes it and its tasks from all swarms.
  Left leave(ClientId member);
  bool has(const protocol::ObjectId& object) const { return swarms_.contains(object); }

 private:
  struct Member {
    protocol::SwarmMember self;
    std::set<ClientId> neighbours;
    std::size_t tasks = 0;
  };
  struct Swarm {
    std::map<ClientId, Member> members;
    std::size_t tasks = 0;
  };
  static void part(Swarm& swarm, const protocol::ObjectId& object, ClientId member, std::vector<Tell>& tells);

  std::map<protocol::ObjectId, Swarm> swarms_;
};

}  // namespace fedge::swarm
