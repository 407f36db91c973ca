// fedge-client: the daemon of an edge device.
#include "apps/client_program.h"

int main(int argc, char** argv) { return fedge::apps::client_main(argc, argv); }
