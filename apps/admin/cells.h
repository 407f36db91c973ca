// Cells of a listing from the JSON of the admin API.
#pragma once

#include <string>
#include <vector>

#include "apps/admin/admin_client.h"
#include "apps/commands/listing.h"

namespace fedge::apps {

// Null and an empty string become an empty cell; a list of strings is joined with commas.
Listing::Cell cell_of(const Json& value);
// The string; empty if it is none.
std::string text_of(const Json& value);
// The fields of the object with these names, in this order.
std::vector<Listing::Cell> cells_of(const Json& object, const std::vector<std::string>& names);
// Rows of a table with these columns, or the objects as JSON, one on each line.
std::string printed(const Json& rows, const std::vector<std::string>& columns, const std::string& format);
// A line for each column, or the object as JSON.
std::string printed_object(const Json& row, const std::vector<std::string>& columns,
                           const std::string& format);

}  // namespace fedge::apps
