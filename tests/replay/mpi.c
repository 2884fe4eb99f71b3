// Four ranks send one another numbers in a ring, share long messages, and one takes what comes first.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static char big[100000];
	int me, n, i, sum = 0, all = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (i = 0; i < 100; i++) {
		int got;
		MPI_Sendrecv(&i, 1, MPI_INT, (me + 1) % n, 1, &got, 1, MPI_INT, (me + n - 1) % n, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum += got;
	}
	memset(big, me, sizeof big);
	for (i = 0; i < 5; i++) {
		MPI_Bcast(big, sizeof big, MPI_CHAR, i % n, MPI_COMM_WORLD);
		MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	if (me == 0)
		for (i = 0; i < (n - 1) * 20; i++) {
			MPI_Status s;
			int v;
			MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &s);
			printf("%d", s.MPI_SOURCE);
		}
	else
		for (i = 0; i < 20; i++)
			MPI_Send(&i, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
	if (me == 0)
		printf("\nsum %d all %d big %d\n", sum, all, big[99999]);
	MPI_Finalize();
	return 0;
}
