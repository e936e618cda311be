"""Normal forms of tensor elements over symbolic sizes: what the size-generic prover (T1) computes with."""
