// Between the directory's messages (directory.proto) and what they mean. Private to the room.
#pragma once

#include "dht/record.h"
#include "proto/directory.pb.h"

namespace fedge::dht {

namespace wire = ::fedge::directory::v1;

void to_wire(const NodeRecord& record, wire::NodeStatus& out);
void to_wire(const Content& content, wire::DirectoryRecord& out);

// The error names the field at fault.
Result<NodeRecord> from_wire(const wire::NodeStatus& status);
Result<Content> content_from_wire(const wire::DirectoryRecord& record);

}  // namespace fedge::dht
