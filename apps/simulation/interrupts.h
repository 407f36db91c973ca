// SIGINT and SIGTERM end a simulation in order.
#pragma once

namespace fedge::apps {

// From now on a signal is noted. It also interrupts waiting for a program to listen.
void catch_interrupts();
// The signal that was received; 0: none.
int interrupt_signal();

}  // namespace fedge::apps
