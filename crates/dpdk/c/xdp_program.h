/* Has the frames of an interface's queue go to an AF_XDP socket; a negative errno if that is not possible. */
int xdp_program_lead_to(int ifindex, unsigned queue, int socket);
/* One of the interface's sockets is about to be closed, which takes it out of the kernel's table. 0 is no interface. */
void xdp_program_leave(int ifindex);
