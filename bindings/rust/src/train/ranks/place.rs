//! The rank of a process, and the address of rank 0.

use adead_core::{Error, Result, Status};
use std::fmt;
use std::str::FromStr;

/// The place of a process among the ranks of a training. Its text is `RANK/RANKS@HOST:PORT`, the address of rank 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of this rank, counted from 0.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
    /// The host and port on which rank 0 listens.
    pub address: String,
}

/// The variables with the rank and the number of ranks, for each launcher.
const LAUNCHERS: [(&str, &str, &str); 4] = [
    ("torchrun", "RANK", "WORLD_SIZE"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MPICH", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS"),
];
/// The port of rank 0 if MASTER_PORT is not set. torchrun has the same default.
const PORT: u16 = 29500;

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl Place {
    /// Reads the place from the environment that torchrun, Open MPI, MPICH or Slurm sets.
    ///
    /// The address of rank 0 is `MASTER_ADDR` and `MASTER_PORT`. Without `MASTER_ADDR`, Slurm's `SLURM_LAUNCH_NODE_IPADDR` is
    /// used; without `MASTER_PORT`, the port 29500. torchrun itself listens on its port, so under torchrun the next port is
    /// used. `invalid_argument` if no launcher set its variables, or their values are not numbers.
    pub fn from_environment() -> Result<Place> {
        Place::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Place> {
        let found = LAUNCHERS.iter().find(|(_, rank, size)| variable(rank).is_some() && variable(size).is_some());
        let Some((launcher, rank, size)) = found else {
            return invalid(
                "no rank in the environment: torchrun sets RANK and WORLD_SIZE; Open MPI, MPICH and Slurm have their own".into(),
            );
        };
        let number = |name: &str| {
            let text = variable(name).unwrap_or_default();
            text.parse::<usize>().or_else(|_| invalid(format!("{name} is '{text}', which is no number")))
        };
        let host = variable("MASTER_ADDR").or_else(|| variable("SLURM_LAUNCH_NODE_IPADDR"));
        let Some(host) = host else {
            return invalid(format!("{launcher} set {rank}, but MASTER_ADDR does not say where rank 0 is"));
        };
        let port = match variable("MASTER_PORT") {
            None => PORT,
            Some(text) => match text.parse::<u16>() {
                Ok(port) if variable("TORCHELASTIC_USE_AGENT_STORE").as_deref() == Some("True") => port.wrapping_add(1),
                Ok(port) => port,
                Err(_) => return invalid(format!("MASTER_PORT is '{text}', which is no port")),
            },
        };
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
        Place { rank: number(rank)?, size: number(size)?, address: format!("{host}:{port}") }.checked()
    }

    pub(super) fn checked(self) -> Result<Place> {
        let Place { rank, size, .. } = self;
        // Every rank has a connection to every other one.
        if !(1..=4096).contains(&size) || rank >= size {
            return invalid(format!("rank {rank} of {size}: ranks count from 0, and there are 1 to 4096"));
        }
        Ok(self)
    }
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Place> {
        let parts = text.split_once('@').and_then(|(ranks, address)| Some((ranks.split_once('/')?, address)));
        let parts = parts.and_then(|((rank, size), address)| Some((rank.parse().ok()?, size.parse().ok()?, address)));
        match parts {
            Some((rank, size, address)) if address.contains(':') => {
                Place { rank, size, address: address.into() }.checked()
            }
            _ => invalid(format!("'{text}' is no place of a rank; one is written 0/4@host:29500")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.rank, self.size, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Result<Place> {
        Place::from_variables(|name| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn launchers_say_which_rank_a_process_is() {
        let of = |variables: &[(&str, &str)]| place(variables).unwrap().to_string();
        let master = [("MASTER_ADDR", "node0"), ("MASTER_PORT", "4000")];
        let with = |own: &[(&'static str, &'static str)]| [own, &master].concat();
        assert_eq!(of(&with(&[("RANK", "2"), ("WORLD_SIZE", "4")])), "2/4@node0:4000");
        let torchrun = [("RANK", "2"), ("WORLD_SIZE", "4"), ("TORCHELASTIC_USE_AGENT_STORE", "True")];
        assert_eq!(of(&with(&torchrun)), "2/4@node0:4001");
        assert_eq!(of(&with(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")])), "0/2@node0:4000");
        assert_eq!(of(&with(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")])), "1/2@node0:4000");
        let slurm = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "3"), ("SLURM_LAUNCH_NODE_IPADDR", "fe80::1")];
        assert_eq!(of(&slurm), "1/3@[fe80::1]:29500");
    }

    #[test]
    fn an_environment_that_lacks_something_says_what() {
        let text = |variables: &[(&str, &str)]| place(variables).unwrap_err().to_string();
        assert!(text(&[]).contains("torchrun sets RANK and WORLD_SIZE"));
        assert!(text(&[("RANK", "0"), ("WORLD_SIZE", "2")]).contains("MASTER_ADDR does not say where rank 0 is"));
        let master = ("MASTER_ADDR", "a");
        assert!(text(&[("RANK", "x"), ("WORLD_SIZE", "2"), master]).contains("RANK is 'x', which is no number"));
        assert!(text(&[("RANK", "2"), ("WORLD_SIZE", "2"), master]).contains("rank 2 of 2"));
        let port = ("MASTER_PORT", "70000");
        assert!(text(&[("RANK", "0"), ("WORLD_SIZE", "2"), master, port]).contains("MASTER_PORT is '70000'"));
    }

    #[test]
    fn a_place_is_written_as_it_is_read() {
        let text = "3/4@10.0.0.1:29500";
        assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        for wrong in ["", "0", "0/4", "0/4@host", "a/4@host:1", "4/4@host:1", "0/0@host:1", "0/5000@host:1"] {
            assert_eq!(wrong.parse::<Place>().unwrap_err().status(), Status::InvalidArgument, "{wrong}");
        }
    }
}
