#include "server/admin/directory_figures.h"

namespace fedge::server {

void add_directory(Exposition& page, const DirectoryFigures& figures) {
  const dht::NetworkStatus& status = figures.status;
  page.add(kDirectoryNodes, Exposition::Samples{{"good", static_cast<double>(status.good_nodes)},
                                                {"dubious", static_cast<double>(status.dubious_nodes)}});
  page.add(kDirectoryRecords, static_cast<double>(status.stored_records));
  page.add(kDirectoryBytes, static_cast<double>(status.stored_bytes));
  page.add(kDirectoryMessages,
           Exposition::Samples{{"sent", static_cast<double>(status.sent_messages)},
                               {"received", static_cast<double>(status.received_messages)}});
  page.add(kDirectoryRefused, static_cast<double>(status.refused_stores));
  Exposition::Samples ignored;
  for (std::size_t i = 0; i < dht::kFlaws; ++i)
    ignored.emplace_back(dht::to_string(static_cast<dht::Flaw>(i)),
                         static_cast<double>(figures.ignored.counts.at(i)));
  page.add(kDirectoryIgnored, ignored);
}

}  // namespace fedge::server
