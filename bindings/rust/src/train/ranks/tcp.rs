//! Ranks over TCP: a connection between every two of them.

use super::{Exchange, Place, Transport, Under, through_host};
use adead_core::{DType, Error, Result, Status, Tensor};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Ranks that are connected over TCP. The connections are not encrypted, and any process that reaches rank 0's port can join.
/// Use them only in a trusted network.
pub struct Tcp {
    rank: usize,
    size: usize,
    /// How long a rank may take to answer.
    patience: Duration,
    peers: Arc<Mutex<Peers>>,
    /// The same connections, to be closed while the thread waits for one.
    ends: Vec<TcpStream>,
    /// What the thread shall do that exchanges tensors while this rank computes. `None` before the first of them.
    jobs: Option<mpsc::Sender<Job>>,
}

/// An exchange of tensors to be made.
struct Job {
    parts: Vec<Vec<Tensor>>,
    dtype: DType,
    expected: Vec<Vec<usize>>,
    found: mpsc::Sender<Result<Vec<Vec<Tensor>>>>,
}

/// The connections.
struct Peers {
    rank: usize,
    /// By rank; the own one has none.
    peers: Vec<Option<TcpStream>>,
    /// How many exchanges there were.
    exchanges: u64,
    /// Why they can't be used any longer.
    broken: Option<String>,
}

/// The first bytes of a connection.
const HELLO: &[u8; 16] = b"adead ranks 0001";
/// How long to wait between two tries to connect, and between two looks for a connection.
const PAUSE: Duration = Duration::from_millis(10);
/// The most bytes of a part that memory is allocated for before they have come.
const MOST_AT_ONCE: u64 = 64 << 20;

fn lost<T>(text: String) -> Result<T> {
    Err(Error::new(Status::Io, text))
}

impl Tcp {
    /// Connects this rank with all others. Every rank calls it. Connecting may take `patience`, and so may each later exchange:
    /// a rank that computes longer between two exchanges counts as lost.
    ///
    /// # Errors `io` if the address can't be used, or a rank does not connect in time; `invalid_argument` if two ranks have the
    /// same number, or their numbers of ranks differ.
    pub fn connect(place: &Place, patience: Duration) -> Result<Tcp> {
        let place = place.clone().checked()?;
        let until = Instant::now() + patience;
        let peers = match (place.rank, place.size) {
            (_, 1) => vec![None],
            (0, _) => welcome(&place, until)?,
            _ => enter(&place, until)?,
        };
        for (rank, peer) in peers.iter().enumerate() {
            let set = |peer: &TcpStream| {
                peer.set_nonblocking(false)?;
                peer.set_nodelay(true)?;
                peer.set_read_timeout(Some(patience))?;
                peer.set_write_timeout(Some(patience))
            };
            peer.as_ref().map_or(Ok(()), set).or_else(|error| lost(format!("rank {rank}: {error}")))?;
        }
        let ends = peers.iter().flatten().map(TcpStream::try_clone).collect::<io::Result<_>>();
        let ends = ends.or_else(|error| lost(format!("no second handle of a connection: {error}")))?;
        let peers = Arc::new(Mutex::new(Peers { rank: place.rank, peers, exchanges: 0, broken: None }));
        Ok(Tcp { rank: place.rank, size: place.size, patience, peers, ends, jobs: None })
    }

    fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a rank may take to answer.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns an error if a rank has left.
    pub(super) fn look(&self) -> Result<()> {
        self.peers().look()
    }

    /// Returns an error if the ranks can't be used any longer.
    pub(super) fn usable(&self) -> Result<()> {
        self.peers().usable()
    }

    /// Starts the thread that exchanges tensors. It ends with the last job.
    fn start(&self) -> Result<mpsc::Sender<Job>> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let peers = self.peers.clone();
        let work = move || {
            for Job { parts, dtype, expected, found } in jobs {
                let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
                // The trainer may be gone.
                let _ = found.send(through_host(peers.rank, |bytes| peers.exchange(bytes), &parts, dtype, &expected));
            }
        };
        let thread = thread::Builder::new().name("adead ranks".into()).spawn(work);
        thread.map(|_| sender).or_else(|error| lost(format!("no thread to exchange with: {error}")))
    }
}

impl Peers {
    fn look(&self) -> Result<()> {
        for (rank, peer) in self.peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let mut byte = [0];
            let _ = peer.set_nonblocking(true);
            let seen = peer.peek(&mut byte);
            let _ = peer.set_nonblocking(false);
            match seen {
                Ok(0) => return lost(why(rank, &ErrorKind::UnexpectedEof.into())),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return lost(why(rank, &error)),
                _ => {}
            }
        }
        Ok(())
    }

    fn usable(&self) -> Result<()> {
        match &self.broken {
            Some(text) => lost(format!("the ranks can't be used any longer: {text}")),
            None => Ok(()),
        }
    }

    fn exchange(&mut self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>> {
        self.usable()?;
        if parts.len() != self.peers.len() {
            let text = format!("{} parts for {} ranks", parts.len(), self.peers.len());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let found = self.try_exchange(parts);
        self.exchanges += 1;
        if let Err(error) = &found {
            self.broken = Some(error.to_string());
            self.peers.iter().flatten().for_each(close);
        }
        found
    }

    fn try_exchange(&self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>> {
        let number = self.exchanges;
        thread::scope(|scope| {
            let mut writers = Vec::new();
            for (rank, (peer, part)) in self.peers.iter().zip(parts.iter()).enumerate() {
                let Some(mut peer) = peer.as_ref() else { continue };
                let write = move || {
                    let length: usize = part.iter().map(|piece| piece.len()).sum();
                    peer.write_all(&[number.to_le_bytes(), (length as u64).to_le_bytes()].concat())?;
                    part.iter().try_for_each(|piece| peer.write_all(piece))
                };
                let writer = thread::Builder::new().spawn_scoped(scope, write);
                writers.push((rank, writer.or_else(|error| lost(format!("no thread to send with: {error}")))?));
            }
            let mut found = Vec::new();
            for (rank, peer) in self.peers.iter().enumerate() {
                found.push(match peer {
                    Some(peer) => receive(peer, number).or_else(|error| lost(why(rank, &error)))?,
                    None => Vec::new(),
                });
            }
            for (rank, writer) in writers {
                let sent = writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that sends ended")));
                sent.or_else(|error| lost(why(rank, &error)))?;
            }
            Ok(found)
        })
    }
}

/// What became of a rank.
fn why(rank: usize, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            format!("rank {rank} has left the training")
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("rank {rank} did not answer in time"),
        _ => format!("rank {rank} is lost: {error}"),
    }
}

fn receive(mut peer: &TcpStream, number: u64) -> io::Result<Vec<u8>> {
    let mut head = [0; 16];
    peer.read_exact(&mut head)?;
    let [theirs, length] =
        [&head[..8], &head[8..]].map(|word| word.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)));
    if theirs != number {
        return Err(io::Error::other(format!("it is at exchange {theirs}, and this rank at {number}")));
    }
    // A longer vector grows as bytes come, so a wrong length allocates little.
    let mut bytes = Vec::with_capacity(length.min(MOST_AT_ONCE) as usize);
    peer.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

impl Transport for Tcp {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&mut self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>> {
        self.peers().exchange(parts)
    }

    fn name(&self) -> String {
        "TCP".into()
    }

    /// Exchanges in a thread, so that this rank computes meanwhile.
    fn begin(&mut self, parts: Vec<Vec<Tensor>>, dtype: DType, expected: Vec<Vec<usize>>) -> Result<Exchange> {
        let jobs = match &self.jobs {
            Some(jobs) => jobs,
            None => self.jobs.insert(self.start()?),
        };
        let (sender, found) = mpsc::channel();
        match jobs.send(Job { parts, dtype, expected, found: sender }) {
            Ok(()) => Ok(Exchange(Under::Thread(found))),
            Err(_) => lost(ENDED.into()),
        }
    }

    fn end(&mut self, exchange: Exchange) -> Result<Vec<Vec<Tensor>>> {
        match exchange.0 {
            Under::Thread(found) => found.recv().unwrap_or_else(|_| lost(ENDED.into())),
            Under::Done(found) => Ok(found),
            Under::Gpu(..) => lost("the exchange began with another transport".into()),
        }
    }

    fn leave(&mut self, error: &Error) {
        self.ends.iter().for_each(close);
        // The first error is the cause of the others.
        self.peers().broken.get_or_insert(error.to_string());
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.ends.iter().for_each(close);
    }
}

/// Ends a connection, so that neither side waits for its patience's end.
fn close(peer: &TcpStream) {
    let _ = peer.shutdown(Shutdown::Both);
}

/// Why an exchange has no result.
const ENDED: &str = "the thread that exchanges tensors has ended";

/// What a rank says when it connects: its number, the number of ranks, and the port on which it waits for others.
struct Hello {
    rank: usize,
    size: usize,
    port: u16,
}

impl Hello {
    fn write(&self, mut to: &TcpStream) -> io::Result<()> {
        let mut bytes = HELLO.to_vec();
        bytes.extend((self.rank as u32).to_le_bytes());
        bytes.extend((self.size as u32).to_le_bytes());
        bytes.extend(self.port.to_le_bytes());
        to.write_all(&bytes)
    }

    fn read(mut from: &TcpStream) -> io::Result<Hello> {
        let mut bytes = [0; 26];
        from.read_exact(&mut bytes)?;
        if bytes[..16] != *HELLO {
            return Err(io::Error::other("not a rank"));
        }
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
        Ok(Hello { rank: number(16), size: number(20), port: u16::from_le_bytes([bytes[24], bytes[25]]) })
    }
}

/// Waits for a rank on a listener. Others that connect, such as a port scanner, are dropped.
fn accept(listener: &TcpListener, until: Instant) -> io::Result<(TcpStream, SocketAddr, Hello)> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, address)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(until.saturating_duration_since(Instant::now()).max(PAUSE)))?;
                if let Ok(hello) = Hello::read(&stream) {
                    return Ok((stream, address, hello));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() >= until {
                    return Err(ErrorKind::TimedOut.into());
                }
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Puts a rank that has connected where it belongs.
fn seat(peers: &mut [Option<TcpStream>], own: usize, hello: &Hello, stream: TcpStream) -> Result<()> {
    let Hello { rank, size, .. } = *hello;
    let invalid = |text: String| Err(Error::new(Status::InvalidArgument, text));
    if size != peers.len() {
        return invalid(format!(
            "rank {rank} says that there are {size} ranks, and rank {own} that there are {}",
            peers.len()
        ));
    }
    if rank >= size || rank == own || peers[rank].is_some() {
        return invalid(format!("two processes say that they are rank {rank} of {size}"));
    }
    peers[rank] = Some(stream);
    Ok(())
}

/// Rank 0: waits for all others, and tells each where the others are.
fn welcome(place: &Place, until: Instant) -> Result<Vec<Option<TcpStream>>> {
    let at = |error: io::Error| Error::new(Status::Io, format!("rank 0 can't wait at {}: {error}", place.address));
    let listener = TcpListener::bind(&place.address).map_err(at)?;
    let mut peers: Vec<Option<TcpStream>> = (0..place.size).map(|_| None).collect();
    let mut addresses = vec![String::new(); place.size];
    for count in 1..place.size {
        let (stream, address, hello) = match accept(&listener, until) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return lost(format!("{count} of {} ranks came to {} in time", place.size, place.address));
            }
            Err(error) => return Err(at(error)),
        };
        seat(&mut peers, 0, &hello, stream)?;
        addresses[hello.rank] = SocketAddr::new(address.ip(), hello.port).to_string();
    }
    let list = addresses.join("\n").into_bytes();
    for (rank, peer) in peers.iter().enumerate() {
        let Some(mut peer) = peer.as_ref() else { continue };
        let mut send = || -> io::Result<()> {
            peer.write_all(&(list.len() as u32).to_le_bytes())?;
            peer.write_all(&list)
        };
        send().or_else(|error| lost(why(rank, &error)))?;
    }
    Ok(peers)
}

/// Another rank: connects to rank 0, then to those before it, and waits for those behind it.
fn enter(place: &Place, until: Instant) -> Result<Vec<Option<TcpStream>>> {
    let fault = |text: &str, error: io::Error| Error::new(Status::Io, format!("rank {}: {text}: {error}", place.rank));
    let to_first = format!("rank 0 at {} can't be reached", place.address);
    let first = reach(&place.address, until).map_err(|error| fault(&to_first, error))?;
    let here: IpAddr = first.local_addr().map_err(|error| fault("no own address", error))?.ip();
    let listener = TcpListener::bind((here, 0)).map_err(|error| fault("can't wait for others", error))?;
    let port = listener.local_addr().map_err(|error| fault("no own port", error))?.port();
    let hello = Hello { rank: place.rank, size: place.size, port };
    let mut list = Vec::new();
    let meet = |list: &mut Vec<u8>| -> io::Result<()> {
        hello.write(&first)?;
        first.set_read_timeout(Some(until.saturating_duration_since(Instant::now()).max(PAUSE)))?;
        let mut length = [0; 4];
        (&first).read_exact(&mut length)?;
        (&first).take(u64::from(u32::from_le_bytes(length))).read_to_end(list).map(drop)
    };
    meet(&mut list).or_else(|error| lost(format!("rank {}: {}", place.rank, why(0, &error))))?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let addresses: Vec<&str> = list.split('\n').collect();
    if addresses.len() != place.size {
        return lost(format!("rank 0 told of {} ranks instead of {}", addresses.len(), place.size));
    }
    let mut peers: Vec<Option<TcpStream>> = (0..place.size).map(|_| None).collect();
    peers[0] = Some(first);
    for (rank, address) in addresses.iter().enumerate().take(place.rank).skip(1) {
        let reached = reach(address, until).and_then(|stream| hello.write(&stream).map(|()| stream));
        let text = format!("rank {rank} at {address} can't be reached");
        peers[rank] = Some(reached.map_err(|error| fault(&text, error))?);
    }
    for _ in place.rank + 1..place.size {
        let (stream, _, hello) = accept(&listener, until).map_err(|error| fault("a later rank did not come", error))?;
        seat(&mut peers, place.rank, &hello, stream)?;
    }
    Ok(peers)
}

/// Connects to an address at which somebody may begin to wait later.
fn reach(address: &str, until: Instant) -> io::Result<TcpStream> {
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let tried = address.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no such host"));
        match tried.and_then(|address| TcpStream::connect_timeout(&address, left)) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
